"""A master, its slave, their registry and their name server, all in the event loop of one test.

async with ReadPair.serving(tmp_path, topics={"Orders": 2}) as pair:
    await pair.master.stop()
    await pair.slave.has(READ)
    await pair.master.start()
    await pair.master.has(FULL)
"""

import asyncio
import shutil
import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Self
from unittest.mock import patch

from tanist.broker import broker as broker_module
from tanist.broker.broker import Broker
from tanist.broker.coordinated_role import CoordinatedRole
from tanist.broker.duties import Duties
from tanist.broker.registration import Registration
from tanist.broker.settings import BrokerSettings
from tanist.broker.state import BrokerState
from tanist.config import parse_settings
from tanist.ha.settings import HaSettings
from tanist.model.route import MASTER_ID
from tanist.model.topics import READ, WRITE, TopicConfig
from tanist.nameserver import NameServer, NameServerSettings
from tanist.protocol.bodies.slave_consume import LedgerEntry, LedgerEvent, SlaveConsumeStatus
from tanist.store import StoreSettings
from tests.support.consuming import DEADLINE_S, until
from tests.support.played_replicas import controlling
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.topics import shown_group

NAME = "broker-a"
_SECRET = "the secret of the pair, long and random"


class PairBroker:
    """One of the two. It keeps its port and its store over ``stop`` and ``start``."""

    def __init__(self, root: Path, settings: Mapping[str, str], topics: Mapping[str, int]) -> None:
        self.root = root
        self.port = free_broker_port()
        self._settings = {
            "brokerName": NAME,
            "brokerIP1": "127.0.0.1",
            "bindAddress": "127.0.0.1",
            "listenPort": str(self.port),
            "storePathRootDir": str(root),
            "mappedFileSizeCommitLog": str(1 << 20),
            "mappedFileSizeConsumeQueue": "6000",
            "maxMessageSize": "65536",
            "haSecret": _SECRET,
            "slaveConsumeChecks": "2",
            **settings,
        }
        self._topics = [
            TopicConfig(topic_name=name, read_queue_count=count, write_queue_count=count, perm=READ | WRITE)
            for name, count in topics.items()
        ]
        self.states: list[BrokerState] = []
        """One for each start."""
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def state(self) -> BrokerState:
        """Of its last start."""
        return self.states[-1]

    @property
    def status(self) -> SlaveConsumeStatus:
        view = self.state.slave_consume
        assert view is not None
        return view.status()

    @property
    def is_in_step(self) -> bool:
        """Whether its only slave has all of its log."""
        store = self.state.store
        acked = [replica.acked_to for replica in self.state.replication.replicas]
        return bool(acked) and min(acked) >= store.log.log_end

    async def start(self) -> None:
        """Serve, from what is on the disk."""
        parsed, store, ha, _ = parse_settings(
            self._settings, BrokerSettings, StoreSettings, HaSettings, source="a test"
        )
        broker = Broker(parsed, store, ha=ha, topics=self._topics)
        started = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task = asyncio.create_task(self._serve(broker, started))
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait([waiting, self._task], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done():
            await self._task

    def set(self, **settings: str) -> None:
        """Have it start with other settings the next time."""
        self._settings |= settings

    async def stop(self) -> None:
        """End it, if it runs."""
        if self._task is not None:
            self._stopping.set()
            await self._task
            self._task = None

    async def crash(self) -> None:
        """End it, and have on its disk of the tables only what was there before."""
        kept = self.root.with_name(f"{self.root.name}.kept")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.root / "config", kept)
        await self.stop()
        shutil.rmtree(self.root / "config")
        kept.rename(self.root / "config")

    async def has(self, permission: str, *, timeout_s: float = 30) -> None:
        """Wait until it has this permission: FULL, WRITE, READ or NONE."""
        await until(lambda: self.status.permission == permission, timeout_s=timeout_s)

    async def entries(self, event: LedgerEvent, count: int = 1) -> list[LedgerEntry]:
        """Its ledger's entries of a kind, once there are so many."""
        view = self.state.slave_consume
        assert view is not None
        found: list[LedgerEntry] = []

        def is_there() -> bool:
            found[:] = [entry for entry in view.ledger(100).entries if entry.event is event]
            return len(found) >= count

        await until(is_there)
        return found

    def has_served(self, group: str, topic: str) -> bool:
        """Whether it has delivered messages of a topic to a group since its start."""
        config = self.state.topics.find(topic)
        assert config is not None
        found = self.state.pull_progress.find
        return any(found(group, topic, queue) for queue in range(config.read_queue_count))

    @contextmanager
    def unheard(self) -> Generator[None]:
        """Its slave does not hear of the offsets that are committed meanwhile."""
        watchers = self.state.offsets.watchers
        told = watchers[:]
        watchers.clear()
        try:
            yield
        finally:
            watchers.extend(told)

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        """Where a group stands here."""
        return {queue: int(offset) for queue, offset in self.state.offsets.queues(group, topic).items()}

    async def _serve(self, broker: Broker, started: asyncio.Event) -> None:
        async with broker.serving():
            started.set()
            await self._stopping.wait()


class ReadPair:
    """The two brokers; ``namesrv`` is what clients are given."""

    def __init__(self, namesrv: str, master: PairBroker, slave: PairBroker) -> None:
        self.namesrv = namesrv
        self.master = master
        self.slave = slave

    @classmethod
    @asynccontextmanager
    async def serving(
        cls, directory: Path, *, topics: Mapping[str, int], settings: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Self]:
        """Both, linked and in step, with the second named in the record: it is read if the master goes."""
        async with AsyncExitStack() as stack:
            controller = await stack.enter_async_context(controlling(directory / "controller"))
            names = NameServer(
                NameServerSettings(listen_port=0, kv_config_path=str(directory / "kvConfig.json"))
            )
            await stack.enter_async_context(names.serving())
            given = {
                "namesrvAddr": names.address,
                "coordinator": f"tanist://{controller.address}",
                "coordinatorTimeoutMillis": "2000",
                **(settings or {}),
            }
            pair = cls(
                names.address,
                PairBroker(
                    directory / "master", {**given, "brokerRole": "SYNC_MASTER", "brokerId": "0"}, topics
                ),
                PairBroker(directory / "slave", {**given, "brokerRole": "SLAVE", "brokerId": "1"}, {}),
            )
            stack.enter_context(patch.object(broker_module, "CoordinatedRole", pair.make_role))
            for broker in (pair.master, pair.slave):
                stack.push_async_callback(broker.stop)
                await broker.start()
            await pair.is_ready()
            yield pair

    def make_role(
        self, duties: Duties, registration: Registration, ha_bound: socket.socket | None
    ) -> CoordinatedRole:
        """In place of ``CoordinatedRole``: lets a test see the state of each broker."""
        broker = self.slave if duties.state.settings.is_slave else self.master
        broker.states.append(duties.state)
        return CoordinatedRole(duties, registration, ha_bound)

    async def is_ready(self) -> None:
        """Wait until the master is read, and the slave would be if it went."""
        slave = self.slave

        def is_so() -> bool:
            record = slave.status.record
            return slave.status.is_linked and record is not None and record.second == slave.address

        await self.master.has("FULL")
        await until(is_so)
        await self.in_step()

    async def in_step(self) -> None:
        """Wait until the slave has all messages and all offsets of the master."""
        await until(lambda: self.master.is_in_step and self._has_tables)

    async def switch(self) -> None:
        """Take the master away, and wait until the slave is read."""
        await self.master.stop()
        await self.slave.has("READ")

    async def hand_back(self) -> None:
        """Bring the master back, and wait until it is read and producers find it."""
        await self.master.start()
        await self.master.has("FULL")
        topic = next(iter(self.master.state.topics.table.topics))
        async with asyncio.timeout(DEADLINE_S):
            while True:
                found = await asyncio.to_thread(shown_group, self.namesrv, topic)
                if found is not None and found[0].get(MASTER_ID) == self.master.address and found[1] & WRITE:
                    return
                await asyncio.sleep(0.02)

    @property
    def _has_tables(self) -> bool:
        master, slave = self.master.state, self.slave.state
        return (
            master.offsets.table().offset_table == slave.offsets.table().offset_table
            and master.topics.table.topics == slave.topics.table.topics
            and master.groups.table.groups == slave.groups.table.groups
        )
