"""What a broker does as master, and what as slave.

A master takes messages, delivers those that waited, asks about transactions, and lets slaves follow. A slave
follows. Both end cleanly, for under a controller a broker goes from the one to the other while it runs.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from tanist.broker.chores import save_tables
from tanist.broker.client_ports import FLUSH_GRACE_S, ClientPorts
from tanist.broker.delays.delivery import Delivery
from tanist.broker.following import Following
from tanist.broker.lasting import listed, running, saving
from tanist.broker.operating.lag_lines import LagLines
from tanist.broker.rebuilding import drop_when_in_step
from tanist.broker.reign import Reign
from tanist.broker.settings import BrokerRole
from tanist.broker.state import BrokerState
from tanist.broker.table_safety import Copies
from tanist.broker.tables_feed import TablesFeed
from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.errors import MQError
from tanist.ha.notes import MasterNotes, SlaveNotes
from tanist.ha.replicas import ReplicaTable
from tanist.remoting import RemotingClient, TlsSettings

_log = logging.getLogger(__name__)

_FOLLOWED_SAVE_MS = 1_000
"""How often a slave saves what its master told of topics and groups."""


@dataclass(slots=True)
class Mastership:
    """One time as master."""

    reign: Reign | None
    """Under a controller, what it may acknowledge and show."""
    is_lost: bool = False
    """Whether somebody else may be master: then nothing more is written, and nobody is waited for."""


@dataclass(frozen=True, slots=True)
class Duties:
    """The duties of one broker. It has those of one role at a time."""

    state: BrokerState
    ports: ClientPorts
    tasks: asyncio.TaskGroup
    tls: TlsSettings | None

    @asynccontextmanager
    async def master(
        self,
        ha_bound: socket.socket,
        begin_reign: Callable[[ReplicaTable], Reign] | None = None,
        on_newer_epoch: Callable[[int], None] | None = None,
        notes: MasterNotes | None = None,
    ) -> AsyncGenerator[Mastership]:
        """Be master while the block lasts, with this port for slaves; under a controller in a reign.

        ``notes`` hears what the slaves note.
        """
        state = self.state
        keeper, delivery = TransactionKeeper(state), Delivery(state)
        keeper.open()
        listeners = state.store.dispatcher.listeners
        with (
            listed(listeners, delivery.on_indexed),
            listed(listeners, keeper.on_indexed),
            ExitStack() as last,
        ):
            # Not before the last is answered: whoever asks then is told that nobody has to have it.
            last.callback(state.table_safety.use, None)
            async with (
                running(self.tasks, {"delivery": delivery.run, "lag": LagLines(state).run}),
                state.replication.serving_slaves(
                    ha_bound,
                    partial(TablesFeed, state),
                    is_waited_for=state.settings.broker_role is BrokerRole.SYNC_MASTER,
                    begin_reign=begin_reign,
                    on_newer_epoch=on_newer_epoch,
                    notes=notes,
                ) as reign,
            ):
                self.ports.serve_as_master(keeper)
                mastership = Mastership(reign)
                state.table_safety.use(self._copies(reign))
                try:
                    async with running(self.tasks, {"transactions": keeper.run}):
                        yield mastership
                finally:
                    await self._end(mastership, keeper)

    def _copies(self, reign: Reign | None) -> Copies | None:
        """Who has to have what operators are told is done."""
        state = self.state
        replicas, timeout_s = state.replication.replicas, state.ha.slave_timeout / 1000
        if reign is not None:
            sync_state = reign.sync_state
            reign.on_confirmed.append(state.table_safety.on_held)
            return Copies(replicas, lambda: sync_state.counted - {sync_state.own_id}, timeout_s)
        if state.settings.broker_role is not BrokerRole.SYNC_MASTER:
            return None
        needed_acks = state.replication.double_write.needed_acks
        return Copies(replicas, lambda: needed_acks, timeout_s)

    async def _end(self, mastership: Mastership, keeper: TransactionKeeper) -> None:
        if mastership.is_lost:
            return
        # While the log still takes it, note what is done with.
        keeper.close()
        # Whoever waits for a slave's ack gets it while there is a link for it.
        await self.state.writer.close(FLUSH_GRACE_S)

    def _save_tables(self) -> None:
        try:
            save_tables(self.state)
        except (MQError, OSError) as error:
            _log.warning("tables are not saved at the end of a slave's role reason=%s", error)

    @asynccontextmanager
    async def slave(
        self, notes: SlaveNotes | None = None, owns_offsets: Callable[[], bool] = lambda: False
    ) -> AsyncGenerator[Following]:
        """Be slave while the block lasts. Whom to follow, the caller tells.

        ``notes`` hears what the master notes. While ``owns_offsets``, ours are not the master's to set.
        """
        state = self.state
        client = RemotingClient(tls=self.tls)
        following = Following(state, client, notes=notes, owns_offsets=owns_offsets)
        chores = {
            "topics": partial(saving, state.topics.start_save, lambda: _FOLLOWED_SAVE_MS),
            "groups": partial(saving, state.groups.start_save, lambda: _FOLLOWED_SAVE_MS),
            "following": following.follower.run,
            "old log": partial(drop_when_in_step, state),
        }
        self.ports.serve_as_slave()
        indexed = listed(state.store.dispatcher.listeners, following.on_indexed)
        with listed(state.writer.on_appended, following.on_appended), indexed:
            try:
                async with running(self.tasks, chores):
                    following.sync.start(self.tasks)
                    yield following
            finally:
                if not owns_offsets():
                    # The master may have been told that we have them, and has acknowledged orders on that.
                    # So a master that is killed as soon as it is one still has them.
                    following.settle_offsets()
                    self._save_tables()
                await following.sync.close()
                await client.close()
                state.replication.follower = None
