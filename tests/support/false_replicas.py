"""A slave and a master that know the secret, are believed, and then say what they like."""

import secrets
import socket
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from tanist.ha.actions import SendBytes
from tanist.ha.admission import MasterLog
from tanist.ha.keys import HaKeys
from tanist.ha.master_link import MasterLink, MasterState
from tanist.ha.slave_link import SlaveLink, SlaveLog, SlaveState
from tanist.protocol.ha_hello import NO_INCARNATION, NONCE_BYTES
from tanist.protocol.ha_link import AckKind
from tests.support.ha_pair import FILE_BYTES

_TIMEOUT_S = 10.0
_READ_BYTES = 1 << 16
_BROKER_ID = 7


class _FalseEnd:
    """A blocking connection. Leaving the ``with`` block closes it."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def say(self, data: bytes) -> None:
        self._socket.sendall(data)

    def is_closed(self) -> bool:
        """Whether the other side hangs up, which is waited for; what it says before that does not matter."""
        try:
            while self._socket.recv(_READ_BYTES):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True

    def _send_all(self, actions: Iterable[object]) -> None:
        for action in actions:
            if isinstance(action, SendBytes):
                self._socket.sendall(action.data)


class FalseSlave(_FalseEnd):
    """Calls a master, and is let in if it is believed: it has no log yet."""

    def __init__(self, ha_address: str, keys: HaKeys, *, file_bytes: int = FILE_BYTES) -> None:
        host, _, port = ha_address.rpartition(":")
        super().__init__(socket.create_connection((host, int(port)), timeout=_TIMEOUT_S))
        nonce, now_s = secrets.token_bytes(NONCE_BYTES), time.monotonic()
        log = SlaveLog(NO_INCARNATION, 0, 0, file_bytes, crc_before=lambda _end, _size: 0)
        link = SlaveLink(keys, _BROKER_ID, nonce, log, AckKind.RECEIVED, now_s, _TIMEOUT_S, _TIMEOUT_S)
        self._send_all(link.on_connected())
        held = b""
        while link.state not in (SlaveState.TRANSFER, SlaveState.CLOSED) and (data := held or self._read()):
            # The log begins right behind the verdict; nobody reads it here.
            actions, used = link.on_bytes(memoryview(data), now_s=now_s)
            self._send_all(actions)
            held = data[used:]
        self.is_let_in = link.state is SlaveState.TRANSFER

    def _read(self) -> bytes:
        try:
            return self._socket.recv(_READ_BYTES)
        except ConnectionResetError:
            return b""


class FalseMaster(_FalseEnd):
    """Answers a slave that calls, and takes it for one that may follow; it says that its log is empty."""

    def __init__(self, connection: socket.socket, keys: HaKeys) -> None:
        connection.settimeout(_TIMEOUT_S)
        super().__init__(connection)
        nonce, now_s = secrets.token_bytes(NONCE_BYTES), time.monotonic()
        link = MasterLink(keys, nonce, _look_at_nothing, now_s, _TIMEOUT_S, _TIMEOUT_S)
        while link.state in (MasterState.HELLO, MasterState.PROOF) and (data := connection.recv(_READ_BYTES)):
            self._send_all(link.on_bytes(data, now_s=now_s))
        self.is_followed = link.is_transferring


def _look_at_nothing() -> MasterLog:
    return MasterLog(
        b"a false log     ", 0, 0, FILE_BYTES, is_last_file_first=False, crc_before=lambda _end, _size: 0
    )
