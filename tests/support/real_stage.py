"""Scenarios played with real processes: brokers, a registry, and cables that can be cut.

A broker reaches the registry by a relay of its own, and slaves reach their master by another one, at an
address that the master calls its own. Consumers are questions asked by hand: one broker at most answers them.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from tanist.coord import Put, open_registry
from tanist.model.reading import (
    FULL,
    NONE,
    ReadRecord,
    assignment_path,
    decode_assignment,
    decode_read_record,
    encode_record,
    read_record_path,
)
from tanist.model.topics import READ, WRITE
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.bodies.sync import ConsumerOffsetTable
from tanist.protocol.headers.offsets import QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest
from tanist.protocol.headers.slave_consume import EndSlaveConsumeRequest
from tanist.protocol.java_json import decode_java_json
from tests.support.relay import Relay
from tests.support.requests import GROUP, TOPIC, pull_request, send_request
from tests.support.rocketmq.cluster import free_port
from tests.support.tanist_cluster import BrokerProcess
from tests.support.wire import Wire

REGISTRY = "registry"
_MASTER_HOST = "127.0.0.2"
"""Where slaves find the relay to their master, which itself has the same port at 127.0.0.1."""
_SECRET = "the secret of the group, long and random"
_MESSAGES = 60
_ANSWER_S = 2.0
_TIMEOUT_S = 60.0
_POLL_S = 0.02
_PERMISSIONS = {"FULL": FULL, "WRITE": WRITE, "READ": READ, "NONE": NONE}


class RealRegistry(Protocol):
    """Where the registry is kept, which can die and come back."""

    scheme: str
    address: str
    suffix: str

    def kill(self) -> None: ...
    def restart(self) -> None: ...


class RealStage:
    """A ``tests.support.scenarios.Stage``. Everything that it started ends with the block."""

    def __init__(
        self,
        directory: Path,
        name_server: str,
        registry: RealRegistry,
        slaves: Iterable[str],
        group: str,
        *,
        checks: int = 3,
    ) -> None:
        self._directory = directory
        self._name_server = name_server
        self._registry = registry
        self._group = group
        self._checks = checks
        self._names = ("master", *slaves)
        self._brokers: dict[str, BrokerProcess] = {}
        self._dead: set[str] = set()
        self._is_registry_down = False
        self._ha_port = free_port()
        self._produced = False
        self._furthest = 0
        self.again_count = 0
        self.told: list[str] = []
        with ExitStack() as running:
            self._ways = {
                frozenset((name, REGISTRY)): running.enter_context(Relay(registry.address))
                for name in self._names
            }
            link = running.enter_context(
                Relay(f"127.0.0.1:{self._ha_port}", host=_MASTER_HOST, port=self._ha_port)
            )
            self._ways |= {frozenset(("master", name)): link for name in self._names[1:]}
            self._running = running.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()
        if self._is_registry_down:
            self._registry.restart()

    # What is done

    def start(self, name: str) -> None:
        if name == REGISTRY:
            if self._is_registry_down:
                self._registry.restart()
                self._is_registry_down = False
        elif name in self._brokers:
            self._dead.discard(name)
            broker = self._brokers[name]
            if broker.process.is_running:
                # The parent, which ended the dead one's presence.
                broker.stop()
            broker.restart()
        else:
            self._brokers[name] = self._running.enter_context(self._new_broker(name))

    def kill(self, name: str) -> None:
        if name == REGISTRY:
            self._registry.kill()
            self._is_registry_down = True
        else:
            self._dead.add(name)
            process = self._brokers[name].process
            for pid in process.children:
                os.kill(pid, signal.SIGKILL)

    def freeze(self, name: str) -> None:
        self._brokers[name].pause()

    def thaw(self, name: str) -> None:
        self._brokers[name].resume()

    def cut(self, one: str, other: str) -> None:
        self._ways[frozenset((one, other))].cut()

    def mend(self, one: str, other: str) -> None:
        self._ways[frozenset((one, other))].mend()

    def delay(self, one: str, other: str, delay_s: float) -> None:
        # Slaves call their master, and everybody calls the registry.
        is_callers = other == REGISTRY or (other == "master" and one != REGISTRY)
        self._ways[frozenset((one, other))].delay(delay_s, is_callers=is_callers)

    def consume(self, count: int) -> int:
        if not self._produced and self.permission("master") == "FULL":
            self._produce()
        deadline_s = time.monotonic() + (_TIMEOUT_S if count > 1 else 0)
        consumed = 0
        while consumed < count:
            name = next((name for name in self._brokers if self._consume_at(name)), None)
            if name is not None:
                consumed += 1
            elif time.monotonic() >= deadline_s:
                break
        self._wait_for_feed()
        return consumed

    def assign(self, name: str, permission: str) -> None:
        async def assign() -> None:
            path = assignment_path(self._group)
            async with self._session() as registry:
                found = await registry.read(path)
                assert found is not None
                assignment = decode_assignment(found.value)
                broker = assignment.find(self._brokers[name].address)
                assert broker is not None
                changed = msgspec.structs.replace(broker, permission=_PERMISSIONS[permission])
                await registry.commit(
                    Put(path, encode_record(assignment.with_broker(changed)), found.version)
                )

        asyncio.run(assign())

    def end(self) -> bool:
        header = EndSlaveConsumeRequest(
            broker_name=self._group, term=self._record().term, reason="a scenario asks for it"
        )
        answer = self._ask("master", Command.request(RequestCode.END_SLAVE_CONSUME, header))
        return answer is not None and answer.code == ResponseCode.SUCCESS

    def restore(self) -> None:
        assert self.end(), "the master does not take its permission back"

    # What is seen

    def permission(self, name: str) -> str:
        answer = self._ask(name, Command.request(RequestCode.GET_READ_STANDING))
        return "gone" if answer is None else dict(answer.ext).get("permission", "gone")

    def reader(self) -> str | None:
        return self._name_of(self._record().reader)

    def second(self) -> str | None:
        return self._name_of(self._record().second)

    def wait(self, duration_s: float, until: Callable[[], bool]) -> bool:
        deadline_s = time.monotonic() + duration_s
        while not until():
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(_POLL_S)
        return True

    def note(self, line: str) -> None:
        self.told.append(line)

    def output(self) -> str:
        """The last that each broker said."""
        return "\n\n".join(
            f"{name}:\n{broker.process.output()[-4000:]}" for name, broker in self._brokers.items()
        )

    # Inside

    def _new_broker(self, name: str) -> BrokerProcess:
        registry = self._ways[frozenset((name, REGISTRY))]
        role: dict[str, Any] = {
            "brokerRole": "SLAVE",
            "brokerId": self._names.index(name),
            # A slave that starts while its master is neither in the registry nor with name servers knows it.
            "haMasterAddress": f"{_MASTER_HOST}:{self._ha_port}",
        }
        if name == "master":
            role = {
                "brokerRole": "ASYNC_MASTER",
                "brokerId": 0,
                "haListenPort": self._ha_port,
                "brokerIP2": _MASTER_HOST,
            }
        return BrokerProcess(
            self._directory / name,
            self._name_server,
            name=self._group,
            coordinator=f"{self._registry.scheme}://{registry.address}{self._registry.suffix}",
            # A killed process loses the offsets that it has not saved yet.
            flushConsumerOffsetInterval=300,
            slaveConsumeChecks=self._checks,
            haSecret=_SECRET,
            **role,
        )

    def _session(self) -> Any:
        registry = self._registry
        return open_registry(f"{registry.scheme}://{registry.address}{registry.suffix}", timeout_s=10.0)

    def _record(self) -> ReadRecord:
        async def read() -> ReadRecord:
            async with self._session() as registry:
                found = await registry.read(read_record_path(self._group))
            return ReadRecord(group=self._group) if found is None else decode_read_record(found.value)

        return asyncio.run(read())

    def _name_of(self, address: str | None) -> str | None:
        return next((name for name, broker in self._brokers.items() if broker.address == address), address)

    def _ask(self, name: str, request: Command) -> Command | None:
        """What a broker answers; None if it does not."""
        if name in self._dead:
            return None
        try:
            with Wire(self._brokers[name].address, timeout_s=_ANSWER_S) as wire:
                return wire.ask(request)
        except (OSError, AssertionError):
            return None

    def _produce(self) -> None:
        for number in range(_MESSAGES):
            answer = self._ask("master", send_request(b"%d" % number))
            assert answer is not None
            assert answer.code == ResponseCode.SUCCESS, answer.remark
        self._produced = True
        if self._is_fed():
            assert self.wait(_TIMEOUT_S, self._is_in_step), "the slaves are not in step"

    def _is_in_step(self) -> bool:
        answer = self._ask("master", Command.request(RequestCode.GET_BROKER_HA_STATUS))
        if answer is None:
            return False
        status = decode_java_json(answer.body, HARuntimeInfo)
        is_all = len(status.slaves) == len(self._live_slaves())
        return is_all and all(slave.acked_to >= status.log_end for slave in status.slaves)

    def _consume_at(self, name: str) -> bool:
        """Pull the next message from a broker, and acknowledge it there; whether both was taken."""
        query = QueryConsumerOffsetRequest(consumer_group=GROUP, topic=TOPIC, queue_id=0)
        found = self._ask(name, Command.request(RequestCode.QUERY_CONSUMER_OFFSET, query))
        if found is None or found.code not in (ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND):
            return False
        offset = int(dict(found.ext).get("offset", 0))
        pulled = self._ask(name, pull_request(offset))
        if pulled is None or pulled.code != ResponseCode.SUCCESS:
            return False
        update = UpdateConsumerOffsetRequest(
            consumer_group=GROUP,
            topic=TOPIC,
            queue_id=0,
            consumer_offset=offset + 1,  # pyright: ignore[reportArgumentType]
        )
        acked = self._ask(name, Command.request(RequestCode.UPDATE_CONSUMER_OFFSET, update))
        if acked is None or acked.code != ResponseCode.SUCCESS:
            return False
        self.again_count += offset < self._furthest
        self._furthest = max(self._furthest, offset + 1)
        return True

    def _is_fed(self) -> bool:
        """Whether a slave hears from a master what consumers have acknowledged there."""
        slaves = self._live_slaves()
        if not slaves or self._ways[frozenset(("master", slaves[0]))].is_cut:
            return False
        return self.permission("master") == "FULL"

    def _live_slaves(self) -> list[str]:
        return [name for name in self._brokers if name != "master" and name not in self._dead]

    def _wait_for_feed(self) -> None:
        """Acknowledgements that are on their way when a master dies come again: none are, in a scenario."""
        if not self._is_fed():
            return

        def offset_at(name: str) -> int | None:
            answer = self._ask(name, Command.request(RequestCode.GET_ALL_CONSUMER_OFFSET))
            if answer is None:
                return None
            table = decode_java_json(answer.body, ConsumerOffsetTable).offset_table
            return table.get(f"{TOPIC}@{GROUP}", {}).get(0)

        names = ["master", *self._live_slaves()]
        is_there = self.wait(_TIMEOUT_S, lambda: len({offset_at(name) for name in names}) == 1)
        assert is_there, "a slave does not hear what was acknowledged at its master"
