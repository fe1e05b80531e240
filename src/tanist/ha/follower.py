"""A slave: finds its master's port, follows its log, and acks what it holds.

    WAITING --address--> CONNECTING --> HANDSHAKE --accepted--> TRANSFER
       ^________________________lost, refused: after a pause_______|

All decisions about bytes are in slave_link; here are the socket, the pauses and the log lines. A pause grows
from 50 ms to 5 s while nothing works, or not for long; a new address is tried at once.
"""

import asyncio
import logging
import random
import secrets
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from tanist.backoff import MOST_S, Backoff
from tanist.clock import Clock
from tanist.errors import MQError, NotWritable
from tanist.ha.actions import CloseKind, CloseLink, TellEpochs
from tanist.ha.autoswitch_slave import AutoswitchSlaveLink
from tanist.ha.classic_slave import ClassicSlaveLink
from tanist.ha.dialect_choice import DialectChoice
from tanist.ha.keys import HaKeys
from tanist.ha.master_connection import MasterConnection, Received
from tanist.ha.notes import SlaveNotes
from tanist.ha.peers import rocketmq_dialect
from tanist.ha.record_walk import RecordWalk, walk_to_end
from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaSettings
from tanist.ha.slave_end import SlaveEnd
from tanist.ha.slave_link import SlaveLink, SlaveLog
from tanist.ha.tables import TableSink
from tanist.ha.throttle import Rate
from tanist.ha.track import Track, make_track
from tanist.log import ToldFailures
from tanist.model.epochs import epochs_text
from tanist.model.host import is_host_and_port
from tanist.protocol.ha_autoswitch import SlaveHandshake
from tanist.protocol.ha_hello import NONCE_BYTES
from tanist.protocol.ha_link import AckKind
from tanist.store import MessageStore
from tanist.store.flush import FlushDone, FlushOutcome

_log = logging.getLogger(__name__)

_CONNECT_S = 5.0
_STEADY_S = 2 * MOST_S
"""A link that lasted so long has worked. One that ends sooner may end so each time: our disk is full, or
another slave has our brokerId, and both take turns. So it is longer than both pause."""


class FollowerState(Enum):
    """What a slave is about."""

    WAITING = "waiting for the master's address"
    CONNECTING = "connecting"
    HANDSHAKE = "handshake"
    TRANSFER = "transfer"
    PAUSED = "pausing before the next try"


@dataclass(slots=True)
class FollowerStatus:
    """How a slave stands to its master."""

    state: FollowerState = FollowerState.WAITING
    master_address: str | None = None
    """The master's HA port."""
    failure: str | None = None
    """Why the last link ended, until the next one works. A refusal tells the way out."""
    dialect: Dialect | None = None
    """What was spoken with the master that last let us in."""
    is_reached: bool = False
    """Whether the master answered when it was last called."""
    is_refused: bool = False
    """Whether the master does not take this slave: more tries will not help."""
    master_log_end: int = 0
    """The end of the master's log, as far as it told."""
    last_read_ms: int = 0
    last_write_ms: int = 0


@dataclass(frozen=True, slots=True)
class Slave:
    """What follows a master, and how it takes over what comes."""

    store: MessageStore
    keys: HaKeys
    settings: HaSettings
    broker_id: int
    append: Callable[[int, memoryview], int]
    """Appends bytes of the master's log at our end; the new end."""
    when_flushed: Callable[[int, FlushDone], None]
    """Tells when the log is on the disk up to an offset."""
    truncate_to: Callable[[int], Awaitable[None]]
    """Cuts our log where it last agrees with the master's."""
    begin_epoch: Callable[[int, int], None]
    """Writes down from where on the log is of an epoch's master."""
    confirm_to: Callable[[int], None]
    """Lets consumers see the log up to here."""
    sink: TableSink | None
    clock: Clock
    on_taken: Callable[[int], None] | None = None
    """Told how many bytes were appended by a track; None: there is to be no track."""
    epoch: int = 0
    """The newest epoch that this replica was told of; 0 with fixed roles."""
    ask_if_rocketmq: Callable[[], Awaitable[bool]] | None = None
    """Asks the master, elsewhere than at its HA port, whether it is one of RocketMQ's; False: not known."""
    notes: SlaveNotes | None = None
    """Who hears what a master of Tanist's notes."""


class Follower:
    """Follows one master for as long as ``run`` runs."""

    def __init__(self, slave: Slave, *, tls: ssl.SSLContext | None = None) -> None:
        self._slave = slave
        self._tls = tls
        self._address: str | None = slave.settings.ha_master_address or None
        self._is_fixed = self._address is not None
        self._address_changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._backoff = Backoff()
        self._rocketmq_dialect = rocketmq_dialect(slave.settings.ha_compatibility)
        self._choice = DialectChoice(self._rocketmq_dialect)
        self._dialect = Dialect.TANIST
        self._failures = ToldFailures()
        self._told_epochs: TellEpochs | None = None
        self._following_since_s = 0.0
        self._is_answered = False
        self.rate = Rate()
        self.on_lost: list[Callable[[], None]] = []
        """Called when a link has ended that worked."""
        self.status = FollowerStatus(master_address=self._address)

    @property
    def is_transferring(self) -> bool:
        """Whether the master's log comes in."""
        return self.status.state is FollowerState.TRANSFER

    def use_master(self, address: str | None) -> None:
        """The master's HA port is here now. What ``haMasterAddress`` says stays."""
        if self._is_fixed or address is None or address == self._address:
            return
        _log.info("master address is told from=%s to=%s", self._address, address)
        self._address = self.status.master_address = address
        self._backoff.reset()
        self._address_changed.set()

    def hasten(self) -> None:
        """The master has been seen: a pause before the next try is over."""
        if self.status.state is FollowerState.PAUSED:
            self._backoff.reset()
            self._address_changed.set()

    async def run(self) -> None:
        """Follow the master, whoever it is, until cancelled."""
        while True:
            self._address_changed.clear()
            if self._address is None:
                self._enter(FollowerState.WAITING)
                await self._address_changed.wait()
                continue
            self._is_answered = False
            await self._follow(self._address)
            self.status.is_reached = self._is_answered
            was_transferring = self.is_transferring
            self._enter(FollowerState.PAUSED)
            if was_transferring:
                for listener in self.on_lost:
                    listener()
            await self._pause()

    def _enter(self, state: FollowerState) -> None:
        """Take up a state, and say so, but not over and over while links fail."""
        level = logging.INFO if self.status.failure is None else logging.DEBUG
        _log.log(level, "slave state from=%s to=%s", self.status.state.name, state.name)
        self.status.state = state

    async def _pause(self) -> None:
        pause_s = self._backoff.next_s(random.random())  # noqa: S311  It only spreads the tries.
        try:
            async with asyncio.timeout(pause_s):
                await self._address_changed.wait()
        except TimeoutError:
            pass

    async def _follow(self, address: str) -> None:
        """One link, from its beginning to its end."""
        self._enter(FollowerState.CONNECTING)
        dialect = self._dialect = await self._choose_dialect(address)
        try:
            if self._slave.epoch or dialect is Dialect.AUTOSWITCH:
                await self._cut_torn_end()
            if self._slave.settings.ha_ack_mode.kind is AckKind.FLUSHED:
                # What is reported at the beginning is acked by that.
                await self._flushed()
            connection = await self._connect(address, dialect)
        except (OSError, ValueError, MQError) as error:
            # Of a name that can not be one there is a ValueError.
            self._note_failure(address, f"can not connect: {error or type(error).__name__}")
            return
        self._enter(FollowerState.HANDSHAKE)
        try:
            await self._until_closed(connection)
            if connection.closed.done() and connection.has_heard_nothing:
                self._on_silence(address, dialect)
        finally:
            connection.drop("the slave stops, or its master is elsewhere")

    async def _choose_dialect(self, address: str) -> Dialect:
        ask, choice = self._slave.ask_if_rocketmq, self._choice
        # The question goes to the master that others tell of, who need not be the one that the config tells.
        is_due = not self._is_fixed and choice.is_open(address, self._loop.time())
        if ask is not None and is_due and await ask():
            _log.info("master is of RocketMQ master=%s", address)
            choice.on_told(address, self._loop.time())
        return choice.next(address, self._loop.time())

    def _on_silence(self, address: str, dialect: Dialect) -> None:
        if self._choice.on_silence(address, dialect, self._loop.time()):
            self._backoff.reset()
            _log.info("master said nothing and is spoken to differently master=%s", address)

    async def _cut_torn_end(self) -> None:
        """Have our log end with a sound record: of the last one its master may have sent only a part.

        What follows that part there may be something else at the next master.
        """
        store = self._slave.store
        sound_to = store.log.log_end
        for place in store.sound_in_turns():
            sound_to = place
            await asyncio.sleep(0)
        if sound_to < store.log.log_end:
            _log.info(
                "what is no whole message is cut truncate_to=%d log_end=%d", sound_to, store.log.log_end
            )
            await self._slave.truncate_to(sound_to)

    async def _flushed(self) -> None:
        """Wait until what the log has now is on the disk. Raises NotWritable if it does not get there."""
        told: asyncio.Future[FlushOutcome] = self._loop.create_future()

        def tell(outcome: FlushOutcome) -> None:
            # Who is stopped meanwhile waits no more.
            if not told.done():
                told.set_result(outcome)

        self._slave.when_flushed(self._slave.store.log.log_end, tell)
        if (outcome := await told) is not FlushOutcome.FLUSHED:
            raise NotWritable(f"the log is not flushed: {outcome.value}")

    async def _connect(self, address: str, dialect: Dialect) -> MasterConnection:
        if not is_host_and_port(address):
            raise ValueError("an address is host:port")
        host, _, port = address.rpartition(":")
        async with asyncio.timeout(_CONNECT_S):
            _, connection = await self._loop.create_connection(
                lambda: MasterConnection(self._make_link(dialect), self._received()),
                host.strip("[]"),
                int(port),
                ssl=self._tls,
            )
        return connection

    async def _until_closed(self, connection: MasterConnection) -> None:
        async with asyncio.TaskGroup() as tasks:
            moved = tasks.create_task(self._address_changed.wait())
            cutting = tasks.create_task(self._cut_when_asked(connection))
            await asyncio.wait([connection.closed, moved], return_when=asyncio.FIRST_COMPLETED)
            moved.cancel()
            # A cut that a link of the past asked for is not done any more.
            cutting.cancel()
        lasted_s = self._loop.time() - self._following_since_s
        if self.is_transferring and lasted_s >= _STEADY_S:
            self._backoff.reset()
            self._failures.is_over("master")
        if connection.closed.done():
            self._on_closed(connection.closed.result())

    async def _cut_when_asked(self, connection: MasterConnection) -> None:
        log_offset = await connection.cut_asked
        try:
            await self._slave.truncate_to(log_offset)
        except (MQError, OSError) as error:
            connection.close(CloseKind.STORE, f"the log is not cut at {log_offset}: {error}")
        else:
            connection.on_truncated()

    def _make_link(self, dialect: Dialect) -> SlaveEnd:
        slave, log = self._slave, self._slave.store.log
        if dialect is Dialect.CLASSIC:
            return self._make_classic_link()
        if dialect is Dialect.AUTOSWITCH:
            return self._make_autoswitch_link()
        return SlaveLink(
            keys=slave.keys,
            broker_id=slave.broker_id,
            nonce=secrets.token_bytes(NONCE_BYTES),
            log=SlaveLog(
                incarnation=slave.store.incarnation,
                log_start=log.log_start,
                log_end=log.log_end,
                file_bytes=slave.store.settings.mapped_file_size_commit_log,
                crc_before=log.crc_before,
                epochs=slave.store.epochs,
                confirmed_to=slave.store.confirmed_whole_to or 0,
                walk_to_end=self._walk_to_end,
            ),
            ack_kind=slave.settings.ha_ack_mode.kind,
            now_s=self._loop.time(),
            heartbeat_s=slave.settings.heartbeat_s,
            silence_s=slave.settings.silence_s,
            asks_first=self._rocketmq_dialect is not None,
            epoch=slave.epoch,
            is_learner=slave.settings.async_learner,
        )

    def _make_classic_link(self) -> ClassicSlaveLink:
        store, settings = self._slave.store, self._slave.settings
        return ClassicSlaveLink(
            log_end=store.log.log_end,
            walk=self._walk_to_end() if store.log.log_end else None,
            file_bytes=store.settings.mapped_file_size_commit_log,
            ack_kind=settings.ha_ack_mode.kind,
            now_s=self._loop.time(),
            heartbeat_s=settings.heartbeat_s,
            silence_s=settings.silence_s,
        )

    def _walk_to_end(self) -> RecordWalk:
        """What is dispatched are whole records; what comes next may complete the one behind them."""
        store = self._slave.store
        dispatched_to = max(store.dispatcher.dispatched_to, store.log.log_start)
        return walk_to_end(store.log, dispatched_to, file_bytes=store.settings.mapped_file_size_commit_log)

    def _make_autoswitch_link(self) -> AutoswitchSlaveLink:
        slave, store = self._slave, self._slave.store
        return AutoswitchSlaveLink(
            handshake=SlaveHandshake(
                slave.broker_id,
                sync_from_last_file=slave.settings.sync_from_last_file,
                async_learner=slave.settings.async_learner,
            ),
            log_end=store.log.log_end,
            epochs=store.epochs,
            file_bytes=store.settings.mapped_file_size_commit_log,
            ack_kind=slave.settings.ha_ack_mode.kind,
            now_s=self._loop.time(),
            heartbeat_s=slave.settings.heartbeat_s,
            silence_s=slave.settings.silence_s,
        )

    def _received(self) -> Received:
        return Received(
            append=self._slave.append,
            follow_log=self._on_accepted,
            tell_epochs=self._tell_epochs,
            apply_table=self._slave.sink.apply if self._slave.sink is not None else None,
            begin_epoch=self._slave.begin_epoch,
            confirm_to=self._slave.confirm_to,
            when_flushed=self._slave.when_flushed,
            on_read=self._on_read,
            on_written=self._on_written,
            track=self._make_track(),
            notes=self._slave.notes,
        )

    def _make_track(self) -> Track | None:
        on_taken = self._slave.on_taken
        if on_taken is None or self._dialect is not Dialect.TANIST:
            return None
        return make_track(self._slave.store.log, on_taken)

    def _on_accepted(self, incarnation: bytes | None) -> None:
        self.status.dialect = self._dialect
        if incarnation is not None:
            self._choice.on_accepted(self.status.master_address or "?")
            self._slave.store.adopt_incarnation(incarnation)
            if self._slave.sink is not None:
                self._slave.sink.begin()
        self._following_since_s = self._loop.time()
        self.status.failure, self.status.is_refused = None, False
        self._enter(FollowerState.TRANSFER)
        _log.info(
            "following master=%s from log_end=%d", self.status.master_address, self._slave.store.log.log_end
        )

    def _tell_epochs(self, told: TellEpochs) -> None:
        """Say which epochs both logs have, but not each time a link is tried in vain."""
        if told != self._told_epochs:
            self._told_epochs = told
            _log.info(
                "epochs compared own=%s master=%s log_end=%d agreed_to=%s",
                *(epochs_text(told.own), epochs_text(told.master), told.log_end, told.agreed_to),
            )

    def _on_read(self, size_bytes: int, master_log_end: int) -> None:
        self._is_answered = self.status.is_reached = True
        self.status.last_read_ms = self._slave.clock.now_ms()
        self.status.master_log_end = master_log_end
        self.rate.add(size_bytes, self._loop.time())

    def _on_written(self) -> None:
        self.status.last_write_ms = self._slave.clock.now_ms()

    def _on_closed(self, closing: CloseLink) -> None:
        self.status.is_refused = closing.kind is CloseKind.REFUSED
        self._note_failure(self.status.master_address or "?", f"{closing.kind.value}: {closing.reason}")

    def _note_failure(self, address: str, reason: str) -> None:
        self.status.failure = reason
        if self._failures.is_news("master", f"{address} {reason}"):
            _log.warning("link to the master ended master=%s reason=%s", address, reason)
