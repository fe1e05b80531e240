"""Brokers and a name server that a test plays, for ``tanist admin``: masters and slaves, and who is dead.

fleet = PlayedFleet({"broker-a": {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}})
"""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager

import pytest
from click.testing import CliRunner, Result

from tanist.broker.slave_role import REFUSED
from tanist.cli.main import tanist
from tanist.errors import ConnectFailed
from tanist.model.route import BrokerData, ClusterInfo, QueueData, TopicRouteData
from tanist.protocol.bodies import encode_body
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.response_errors import NotMaster, error_of

CLUSTER, NAME_SERVER = "DefaultCluster", "10.0.0.9:9876"
Answer = Callable[[str, Command], Command]


class PlayedFleet:
    """Answers as told, refuses what slaves refuse, and does anything else without a word."""

    def __init__(self, groups: Mapping[str, Mapping[int, str]]) -> None:
        self._groups = [
            BrokerData(cluster=CLUSTER, broker_name=name, broker_addrs=dict(addresses))
            for name, addresses in groups.items()
        ]
        self.answers: dict[int, Answer] = {}
        self.dead: set[str] = set()
        self.asked: list[tuple[str, Command]] = []

    def runs(self, monkeypatch: pytest.MonkeyPatch, *words: str, typed: str | None = None) -> Result:
        """What a command of ``tanist admin`` prints and ends with here; ``typed`` is what it is told."""

        @asynccontextmanager
        async def asking(_access: object) -> AsyncGenerator[PlayedFleet]:
            yield self

        monkeypatch.setattr("tanist.cli.asked.asking", asking)
        return CliRunner().invoke(tanist, ["admin", *words, "-n", NAME_SERVER], input=typed)

    def who_got(self, code: RequestCode) -> list[str]:
        """The addresses that were asked this, in order."""
        return [address for address, command in self.asked if command.code == code]

    async def ask(
        self,
        address: str,
        command: Command,
        *,
        timeout_s: float | None = None,
        accepted: Collection[int] = frozenset({int(ResponseCode.SUCCESS)}),
    ) -> Command:
        del timeout_s
        self.asked.append((address, command))
        if address in self.dead:
            raise ConnectFailed(address, "refused")
        answer = self._answer(address, command)
        if answer.code not in accepted:
            raise error_of(answer)
        return answer

    def _answer(self, address: str, command: Command) -> Command:
        slaves = [at for group in self._groups for number, at in group.broker_addrs.items() if number]
        if address in slaves and command.code in REFUSED:
            raise NotMaster(REFUSED[command.code], "this broker is a slave", master_address=None)
        if command.code in self.answers:
            return self.answers[command.code](address, command)
        match command.code:
            case RequestCode.GET_BROKER_CLUSTER_INFO:
                names = [group.broker_name for group in self._groups]
                info = ClusterInfo(
                    broker_addr_table={group.broker_name: group for group in self._groups},
                    cluster_addr_table={CLUSTER: frozenset(names)},
                )
                return command.reply(body=encode_body(info))
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                return self.route(command)
            case _:
                return command.reply()

    def route(self, command: Command) -> Command:
        """The answer of a name server: every group has one queue of every topic."""
        offers = [
            QueueData(broker_name=group.broker_name, read_queue_count=1, write_queue_count=1, perm=6)
            for group in self._groups
        ]
        return command.reply(body=encode_body(TopicRouteData(queue_datas=offers, broker_datas=self._groups)))
