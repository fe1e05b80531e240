"""A master's HA port: who comes is judged, who is let in gets the log, and what it acks is believed.

All checks are in the pure ends of the links; here are the sockets, the bounds on how many there may be, and
the log lines. A peer that keeps coming with the same kind of fault is told of once a minute.
"""

import asyncio
import logging
import secrets
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from tanist.clock import Clock, steady_ms
from tanist.ha.actions import CloseKind, CloseLink, StartTransfer
from tanist.ha.admission import MASTER_ID, MasterLog
from tanist.ha.autoswitch_master import AutoswitchMasterLink
from tanist.ha.classic_master import ClassicMasterLink
from tanist.ha.crcs import Crcs
from tanist.ha.epoch_log import EpochLog
from tanist.ha.keys import HaKeys
from tanist.ha.lag import EndMarks
from tanist.ha.master_end import MasterEnd
from tanist.ha.master_link import MasterLink
from tanist.ha.notes import MasterNotes
from tanist.ha.peers import Peers
from tanist.ha.replicas import Dialect, RefusedPeer, Replica, ReplicaTable
from tanist.ha.sending import Sending
from tanist.ha.settings import HaSettings
from tanist.ha.slave_connection import SlaveConnection
from tanist.ha.tables import FeedMaker
from tanist.ha.tls_entrance import TlsEntrance
from tanist.ha.told import ToldRefusals
from tanist.protocol.ha_hello import HELLO_S, NONCE_BYTES
from tanist.remoting import stop_listening
from tanist.store import MessageStore

_log = logging.getLogger(__name__)

MAX_UNPROVEN = 64
"""So many peers may be about to prove themselves at a time."""
MAX_CUTTING = 64
"""So many slaves that have proven themselves may be about to cut their logs at a time."""
_MAX_REFUSED_HOSTS = 256
_ROCKETMQ_BUFFER_BYTES = 64 << 10
"""Whoever is let in by his address alone gets no more of the system's memory than RocketMQ gives."""
_ROCKETMQ_PAUSE_S = 1.0
"""A slave of RocketMQ 4 that was refused is back at once, again and again: it is heard once in this time."""
_REFUSALS = frozenset(CloseKind) - {CloseKind.LOST, CloseKind.STOPPED, CloseKind.REPLACED, CloseKind.SILENT}


@dataclass(frozen=True, slots=True)
class Master:
    """What the port serves, and whom it tells."""

    store: MessageStore
    keys: HaKeys
    settings: HaSettings
    replicas: ReplicaTable
    on_replicas: Callable[[], None]
    """Called when a slave has acked more, has come, or is gone."""
    make_feed: FeedMaker | None
    clock: Clock
    epoch: int = 0
    """Which reign this is, by a controller's word; 0 with fixed roles."""
    own_id: int = MASTER_ID
    """The id that the controller gave this replica."""
    confirmed_to: Callable[[], int] | None = None
    """Up to where all replicas in step hold the log; its end if not said."""
    on_newer_epoch: Callable[[int], None] | None = None
    """Called when a slave was told of a newer epoch than ours: another one is master now."""
    notes: MasterNotes | None = None
    """Who hears what slaves of Tanist's note."""

    @property
    def epoch_log(self) -> EpochLog | None:
        """What links have to know of it; None with fixed roles."""
        store = self.store
        if not self.epoch:
            return None
        return EpochLog(
            self.epoch,
            epochs=lambda: store.epochs,
            confirmed_to=self.confirmed_to or (lambda: store.log.log_end),
            own_id=self.own_id,
        )


class Acceptor:
    """Serves one master's slaves while it listens."""

    def __init__(self, master: Master, *, tls: ssl.SSLContext | None = None) -> None:
        self._master = master
        self._tls = tls
        settings = master.settings
        self._sending = Sending(
            log=master.store.log,
            crcs=Crcs(),
            make_feed=master.make_feed,
            bytes_per_second=(
                settings.max_ha_transfer_byte_in_second if settings.ha_flow_control_enable else 0
            ),
            notes=master.notes,
        )
        # In the order in which they came.
        self._connections: dict[SlaveConnection, None] = {}
        self._peers = Peers.of(settings)
        self._epoch_log = master.epoch_log
        self._rocketmq_refused_s: dict[str, float] = {}
        self._server: asyncio.Server | None = None
        self._told = ToldRefusals()
        self.marks = EndMarks(master.store.log.log_end, self._monotonic_ms())
        """From which a slave's lag is told in time."""

    async def start(self, bound: socket.socket) -> None:
        """Listen on a port that is bound already."""
        self._server = await asyncio.get_running_loop().create_server(self._make_protocol, sock=bound)
        host, port = bound.getsockname()[:2]
        _log.info("ha service started host=%s port=%d", host, port)

    async def close(self) -> None:
        """Stop listening, and end all links."""
        if self._server is None:
            return
        await stop_listening(self._server)
        for connection in tuple(self._connections):
            connection.close(CloseKind.STOPPED, "the master stops")
        await self._server.wait_closed()
        self._server = None
        while self._connections:
            await asyncio.sleep(0)
            for connection in tuple(self._connections):
                connection.wire.abort()
        _log.info("ha service ended")

    def on_appended(self) -> None:
        """The log has grown: the slaves get it now."""
        for connection in self._connections:
            connection.push()
        self.marks.note(self._master.store.log.log_end, self._monotonic_ms())

    def on_confirmed(self) -> None:
        """More of the log is confirmed than before: the slaves are told."""
        if self._epoch_log is not None:
            for connection in self._connections:
                connection.confirm_soon()

    def lag_ms(self, replica: Replica) -> int:
        """How long a slave has lacked its next byte."""
        return self.marks.lag_ms(
            replica.acked_to, log_end=self._master.store.log.log_end, now_ms=self._monotonic_ms()
        )

    # What a connection asks and tells.

    def on_open(self, connection: SlaveConnection) -> float:
        self._connections[connection] = None
        _log.debug("HAService receive new connection, %s", connection.wire.peer)
        waiting = [other for other in self._connections if other.replica is None and not other.is_closing]
        # The oldest: whoever opens connections and says nothing does not keep slaves out, who are quick.
        unproven = [other for other in waiting if not other.is_proven]
        if len(unproven) > MAX_UNPROVEN:
            unproven[0].close(CloseKind.TOO_SLOW, f"{MAX_UNPROVEN} others are about to prove themselves")
        cutting = [other for other in waiting if other.is_proven]
        if len(cutting) > MAX_CUTTING:
            cutting[0].close(CloseKind.TOO_SLOW, f"{MAX_CUTTING} others are about to cut their logs")
        host = _host(connection.wire.peer)
        if not self._peers.may_be_rocketmq(host):
            return HELLO_S
        refused_s = self._rocketmq_refused_s.get(host)
        if refused_s is not None:
            connection.hold(refused_s + _ROCKETMQ_PAUSE_S)
        # A slave of RocketMQ says nothing for 5 s after it has connected.
        return self._master.settings.silence_s

    def choose_end(self, connection: SlaveConnection, first: bytes) -> MasterEnd | CloseLink:
        settings = self._master.settings
        now_s = connection.opened_s
        match self._peers.dialect(first[0], _host(connection.wire.peer)):
            case Dialect.TANIST:
                return MasterLink(
                    keys=self._master.keys,
                    nonce=secrets.token_bytes(NONCE_BYTES),
                    look_at_log=self._look_at_log,
                    now_s=now_s,
                    heartbeat_s=settings.heartbeat_s,
                    silence_s=settings.silence_s,
                    epoch_log=self._epoch_log,
                )
            case Dialect.CLASSIC:
                connection.wire.set_buffers(_ROCKETMQ_BUFFER_BYTES)
                return ClassicMasterLink(
                    log=self._master.store.log,
                    first_for_empty=self._look_at_log().first_for_empty,
                    batch_bytes=settings.ha_transfer_batch_size,
                    now_s=now_s,
                    heartbeat_s=settings.heartbeat_s,
                    silence_s=settings.silence_s,
                )
            case Dialect.AUTOSWITCH:
                connection.wire.set_buffers(_ROCKETMQ_BUFFER_BYTES)
                return self._make_autoswitch_link(now_s)
            case refusal:
                return CloseLink(CloseKind.NO_HELLO, refusal)

    def on_joined(self, connection: SlaveConnection, start: StartTransfer) -> Replica:
        assert connection.end is not None
        replica = Replica(
            peer=connection.wire.peer,
            dialect=connection.end.dialect,
            broker_id=start.broker_id,
            counts=not start.is_learner
            and self._peers.counts(connection.end.dialect, _host(connection.wire.peer)),
            requested_to=start.requested_to,
            sent_from=start.start_offset,
            held_from=start.held_from,
            is_learner=start.is_learner,
            ack_kind=start.ack_kind,
            since_ms=self._master.clock.now_ms(),
        )
        before = self._master.replicas.join(replica)
        _log.info("slave[%s] request offset %d", replica.peer, replica.requested_to)
        _log.info(
            "master transfer data from %d to slave[%s], and slave request %d id=%s dialect=%s",
            *(replica.sent_from, replica.peer, replica.requested_to),
            *(replica.broker_id, replica.dialect.value),
        )
        if before is not None:
            self._replace(before, replica)
        self._master.on_replicas()
        self.on_confirmed()
        return replica

    def on_acked(self, connection: SlaveConnection, acked_to: int) -> None:
        assert connection.replica is not None
        connection.replica.acked_to = acked_to
        self._master.on_replicas()
        self.on_confirmed()

    def on_newer_epoch(self, epoch: int) -> None:
        if self._master.on_newer_epoch is not None:
            self._master.on_newer_epoch(epoch)

    def on_closed(self, connection: SlaveConnection, kind: CloseKind, reason: str) -> None:
        self._connections.pop(connection, None)
        if kind in _REFUSALS:
            self._note_refused(connection, kind, reason)
        if kind is CloseKind.SILENT:
            _log.warning(
                "ha housekeeping, found this connection[%s] expired, %s", connection.wire.peer, reason
            )
        if connection.replica is not None:
            self._master.replicas.leave(connection.replica)
            self._master.on_replicas()
            _log.info(
                "slave left peer=%s id=%s acked_to=%d kind=%s reason=%s",
                *(connection.replica.peer, connection.replica.broker_id, connection.replica.acked_to),
                *(kind.value, reason),
            )

    # Inside

    def _make_protocol(self) -> asyncio.Protocol:
        connection = SlaveConnection(self, self._sending)
        return connection if self._tls is None else TlsEntrance(connection, self._tls)

    def _monotonic_ms(self) -> int:
        """For ages: the wall clock may be set meanwhile."""
        return steady_ms(self._master.clock)

    def _make_autoswitch_link(self, now_s: float) -> AutoswitchMasterLink:
        master = self._master
        return AutoswitchMasterLink(
            log=master.store.log,
            look_at_epochs=lambda: master.store.epochs,
            confirmed_to=master.confirmed_to or (lambda: master.store.log.log_end),
            may_come=self._may_come_unproven,
            file_bytes=master.store.settings.mapped_file_size_commit_log,
            batch_bytes=master.settings.ha_transfer_batch_size,
            now_s=now_s,
            heartbeat_s=master.settings.heartbeat_s,
            silence_s=master.settings.silence_s,
        )

    def _may_come_unproven(self, broker_id: int) -> bool:
        """Whether a peer is believed to be this slave without a proof: not beside one that has proven it.

        Whether a controller ever gave this id is not asked (docs/adr/0006): who has one that it did not give
        is served, and does not count, as the controller refuses a set with it.
        """
        is_proven = any(
            replica.broker_id == broker_id and replica.dialect is Dialect.TANIST
            for replica in self._master.replicas
        )
        return broker_id > MASTER_ID and broker_id != self._master.own_id and not is_proven

    def _look_at_log(self) -> MasterLog:
        store, log = self._master.store, self._master.store.log
        return MasterLog(
            incarnation=store.incarnation,
            log_start=log.log_start,
            log_end=log.log_end,
            file_bytes=store.settings.mapped_file_size_commit_log,
            is_last_file_first=self._master.settings.sync_from_last_file,
            crc_before=log.crc_before,
        )

    def _replace(self, before: Replica, replica: Replica) -> None:
        if self._told.is_news(replica.identity, CloseKind.REPLACED.value, now_ms=self._monotonic_ms()):
            _log.warning(
                "slave is connected anew %s from=%s before=%s; if these are two, give each its own brokerId",
                *(replica.identity.replace(" ", "="), replica.peer, before.peer),
            )
        for connection in tuple(self._connections):
            if connection.replica is before:
                connection.close(CloseKind.REPLACED, f"it is connected anew from {replica.peer}")

    def _note_refused(self, connection: SlaveConnection, kind: CloseKind, reason: str) -> None:
        peer, received = connection.wire.peer, connection.first_bytes.hex()
        if connection.end is not None and connection.end.dialect is not Dialect.TANIST:
            self._note_rocketmq_refused(_host(peer))
        self._master.replicas.refuse(
            RefusedPeer(peer, f"{kind.value}: {reason}", received, self._master.clock.now_ms()),
            kind=kind.value,
        )
        if self._told.is_news(_host(peer), kind.value, now_ms=self._monotonic_ms()):
            _log.warning(
                "peer on the ha port refused peer=%s kind=%s reason=%s received=%s",
                *(peer, kind.value, reason, received),
            )

    def _note_rocketmq_refused(self, host: str) -> None:
        if len(self._rocketmq_refused_s) >= _MAX_REFUSED_HOSTS:
            self._rocketmq_refused_s.clear()
        self._rocketmq_refused_s[host] = asyncio.get_running_loop().time()


def _host(peer: str) -> str:
    return peer.rpartition(":")[0].strip("[]")
