"""A slave that knows the secret, is let in, and then says what it likes."""

import secrets
import socket
import time
from types import TracebackType
from typing import Self

from tanist.ha.actions import CloseLink, SendBytes, SlaveAction
from tanist.ha.keys import HaKeys
from tanist.ha.slave_link import SlaveLink, SlaveLog, SlaveState
from tanist.protocol.ha_hello import NO_INCARNATION, NONCE_BYTES
from tanist.protocol.ha_link import AckKind

_TIMEOUT_S = 10.0
_READ_BYTES = 1 << 16
EMPTY_LOG = SlaveLog(NO_INCARNATION, log_start=0, log_end=0, file_bytes=1, crc_before=lambda _end, _size: 0)


class FalseSlave:
    """A blocking connection. Leaving the ``with`` block closes it."""

    def __init__(
        self, ha_address: str, keys: HaKeys, *, broker_id: int = 7, log: SlaveLog = EMPTY_LOG
    ) -> None:
        host, _, port = ha_address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)
        self._link = SlaveLink(
            keys,
            broker_id,
            secrets.token_bytes(NONCE_BYTES),
            log,
            AckKind.RECEIVED,
            now_s=time.monotonic(),
            heartbeat_s=_TIMEOUT_S,
            silence_s=_TIMEOUT_S,
        )
        self.closing: CloseLink | None = None
        """Why it is not let in."""
        self._act(self._link.on_connected())
        while self._link.state in (SlaveState.HELLO, SlaveState.VERDICT):
            data = self._socket.recv(_READ_BYTES)
            if not data:
                break
            # The log begins right behind the verdict; nobody reads it here.
            self._act(self._link.on_bytes(memoryview(data), now_s=time.monotonic())[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    @property
    def is_let_in(self) -> bool:
        return self._link.state is SlaveState.TRANSFER

    def say(self, data: bytes) -> None:
        self._socket.sendall(data)

    def is_closed(self) -> bool:
        """Whether the master hangs up, which is waited for; what it says before that does not matter."""
        try:
            while self._socket.recv(_READ_BYTES):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True

    def _act(self, actions: list[SlaveAction]) -> None:
        for action in actions:
            match action:
                case SendBytes(data):
                    self._socket.sendall(data)
                case CloseLink():
                    self.closing = action
                case _:
                    pass
