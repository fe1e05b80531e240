"""How one broker stands to the others of its group: a master with its slaves, or a slave of its master."""

import logging
import secrets
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from tanist.broker.lasting import listed
from tanist.broker.reign import Reign
from tanist.broker.settings import MASTER_ID, BrokerSettings
from tanist.broker.writer import LogWriter
from tanist.clock import Clock
from tanist.errors import ConfigError
from tanist.ha.acceptor import Acceptor, Master
from tanist.ha.double_write import DoubleWrite
from tanist.ha.follower import Follower, Slave
from tanist.ha.keys import HaKeys
from tanist.ha.notes import MasterNotes, SlaveNotes
from tanist.ha.replicas import Replica, ReplicaTable
from tanist.ha.settings import HaAuthentication, HaSettings
from tanist.ha.tables import FeedMaker, TableSink
from tanist.protocol.ha_hello import INCARNATION_BYTES, NO_INCARNATION, Authentication
from tanist.remoting.tls import ClientAuth, TlsMode, TlsSettings, client_context, server_context
from tanist.store import MessageStore
from tanist.store.flush import Flusher

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """What replication needs of a broker."""

    settings: BrokerSettings
    ha: HaSettings
    tls: TlsSettings | None
    store: MessageStore
    writer: LogWriter
    flusher: Flusher
    clock: Clock


class Replication:
    """One broker's replication. It is there before it runs, so that handlers can ask it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._begin_anew()
        self.acceptor: Acceptor | None = None
        """A master's port, while it serves."""
        self.follower: Follower | None = None
        """A slave's link, while it serves."""
        self.master_address: str | None = None
        """Where a slave's master serves clients, as far as the slave has heard."""

    def _begin_anew(self) -> None:
        """Nothing of what slaves said to another master, or to this one before, is believed."""
        self.replicas = ReplicaTable(fallbehind_max_bytes=self._parts.ha.ha_slave_fallbehind_max)
        self.double_write = DoubleWrite(self.replicas, self._parts.ha)

    def lag_ms(self, replica: Replica) -> int:
        """How long a slave has lacked its next byte."""
        return 0 if self.acceptor is None else self.acceptor.lag_ms(replica)

    @asynccontextmanager
    async def serving_slaves(
        self,
        bound: socket.socket,
        make_feed: FeedMaker | None,
        *,
        is_waited_for: bool,
        begin_reign: Callable[[ReplicaTable], Reign] | None = None,
        on_newer_epoch: Callable[[int], None] | None = None,
        notes: MasterNotes | None = None,
    ) -> AsyncGenerator[Reign | None]:
        """Let slaves follow while the block lasts; under a controller in a reign that begins with it."""
        parts = self._parts
        self._begin_anew()
        if is_waited_for:
            parts.writer.pending.use(self.double_write)
        reign = None if begin_reign is None else begin_reign(self.replicas)
        if parts.store.incarnation == NO_INCARNATION:
            parts.store.make_incarnation(secrets.token_bytes(INCARNATION_BYTES))
        master = Master(
            store=parts.store,
            keys=make_keys(parts.settings, parts.ha),
            settings=parts.ha,
            replicas=self.replicas,
            on_replicas=parts.writer.pending.on_confirmed if reign is None else reign.on_replicas,
            make_feed=make_feed,
            clock=parts.clock,
            epoch=0 if reign is None else reign.sync_state.epoch,
            own_id=MASTER_ID if reign is None else reign.sync_state.own_id,
            confirmed_to=None if reign is None else reign.confirmed_to,
            on_newer_epoch=on_newer_epoch,
            notes=notes,
        )
        self.acceptor = acceptor = Acceptor(master, tls=_server_tls(parts.ha, parts.tls))
        with listed(parts.writer.on_appended, acceptor.on_appended):
            await acceptor.start(bound)
            if reign is not None:
                reign.on_confirmed.append(acceptor.on_confirmed)
                parts.writer.follow(reign)
            try:
                yield reign
            finally:
                await acceptor.close()
                self.acceptor = None

    def make_follower(
        self,
        sink: TableSink | None,
        *,
        broker_id: int,
        epoch: int,
        ask_if_rocketmq: Callable[[], Awaitable[bool]] | None = None,
        notes: SlaveNotes | None = None,
    ) -> Follower:
        """A slave's link. The caller runs it."""
        parts = self._parts
        slave = Slave(
            store=parts.store,
            keys=make_keys(parts.settings, parts.ha),
            settings=parts.ha,
            broker_id=broker_id,
            append=parts.writer.append_raw,
            on_taken=parts.writer.on_raw_taken,
            truncate_to=parts.writer.truncate_to,
            begin_epoch=parts.store.follow_epoch,
            confirm_to=parts.writer.confirm_to,
            when_flushed=parts.flusher.when_flushed,
            sink=sink,
            clock=parts.clock,
            epoch=epoch,
            ask_if_rocketmq=ask_if_rocketmq,
            notes=notes,
        )
        self.follower = Follower(slave, tls=_client_tls(parts.ha, parts.tls))
        return self.follower


def make_keys(settings: BrokerSettings, ha: HaSettings) -> HaKeys:
    """What this broker proves itself by."""
    if ha.ha_authentication is HaAuthentication.TLS:
        return HaKeys(settings.broker_name, Authentication.MUTUAL_TLS)
    if ha.ha_secret:
        return HaKeys(settings.broker_name, Authentication.SECRET, ha.ha_secret.encode())
    return HaKeys(settings.broker_name, Authentication.NONE)


def _server_tls(ha: HaSettings, tls: TlsSettings | None) -> ssl.SSLContext | None:
    if ha.ha_authentication is not HaAuthentication.TLS:
        return None
    return server_context(
        _mutual(
            tls,
            {
                "tlsServerCertPath": "tls_server_cert_path",
                "tlsServerTrustCertPath": "tls_server_trust_cert_path",
            },
            tls_mode=TlsMode.ENFORCING,
            tls_server_need_client_auth=ClientAuth.REQUIRE,
        )
    )


def _client_tls(ha: HaSettings, tls: TlsSettings | None) -> ssl.SSLContext | None:
    if ha.ha_authentication is not HaAuthentication.TLS:
        return None
    return client_context(
        _mutual(
            tls,
            {
                "tlsClientCertPath": "tls_client_cert_path",
                "tlsClientTrustCertPath": "tls_client_trust_cert_path",
            },
            tls_enable=True,
            tls_client_auth_server=True,
        )
    )


def _mutual(tls: TlsSettings | None, needed: dict[str, str], **changes: object) -> TlsSettings:
    """The settings of TLS with both sides proven. Raises ConfigError if the certificates are not there."""
    tls = tls or TlsSettings()
    for key, name in needed.items():
        if not getattr(tls, name):
            raise ConfigError(key, "", "a PEM file: haAuthentication=tls has both sides prove themselves")
    return msgspec.structs.replace(tls, **changes)
