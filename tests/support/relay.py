"""A cable between a slave and its master, which can be cut and led elsewhere and remembers what was said.

with Relay(master.ha_address) as cable:
    slave = start_slave(haMasterAddress=cable.address)
    cable.cut()
    cable.lead_to(other_master.ha_address)
"""

import contextlib
import queue
import socket
import threading
import time
from types import TracebackType
from typing import Self

_HOST = "127.0.0.1"
_READ_BYTES = 1 << 16
_CONNECT_TIMEOUT_S = 5.0


class Relay:
    """Passes bytes on between whoever connects to it and one address. It ends with its block."""

    def __init__(self, address: str, *, host: str = _HOST, port: int = 0) -> None:
        """``host`` and ``port`` are where it is called; any free port unless told."""
        self._target = address
        self.is_cut = False
        self._flows = threading.Event()
        self._flows.set()
        self._delays_s = {True: 0.0, False: 0.0}
        """By whether it is the callers who say it."""
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server((host, port))
        self.calls: list[bytearray] = []
        """What each caller said so far, in the order in which they called."""
        threading.Thread(target=self._accept, name="relay", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self.cut()
        # A thread in accept() is not woken by close().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def address(self) -> str:
        """Where a slave finds its master."""
        return "{}:{}".format(*self._listener.getsockname())

    def cut(self) -> None:
        """Drop who is connected; who calls from now on is dropped too."""
        with self._lock:
            self.is_cut = True
            for end in self._sockets:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self._flows.set()

    def hold(self) -> None:
        """Keep what anybody says until the cable is cut or mended; connections stay open."""
        self._flows.clear()

    def delay(self, delay_s: float, *, is_callers: bool) -> None:
        """Pass on so much later what callers, or those who are called, say from now on."""
        self._delays_s[is_callers] = delay_s

    def mend(self) -> None:
        """Who calls from now on is connected again, and hears what was held."""
        with self._lock:
            self.is_cut = False
        self._flows.set()

    def lead_to(self, address: str) -> None:
        """Drop who is connected; who calls from now on reaches this address."""
        self.cut()
        with self._lock:
            self._target = address
        self.mend()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                self._connect(caller)

    def _connect(self, caller: socket.socket) -> None:
        host, _, port = self._target.rpartition(":")
        try:
            if self.is_cut:
                raise ConnectionRefusedError
            callee = socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S)
        except OSError:
            caller.close()
            return
        callee.settimeout(None)
        said = bytearray()
        with self._lock:
            self.calls.append(said)
            self._sockets |= {caller, callee}
            if self.is_cut:  # Since we looked.
                self._hang_up(caller, callee)
        for source, sink, heard in ((caller, callee, said), (callee, caller, None)):
            threading.Thread(
                target=self._pass_on, args=(source, sink, heard), name="relay-way", daemon=True
            ).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, heard: bytearray | None) -> None:
        late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        deliver: threading.Thread | None = None
        with contextlib.suppress(OSError):
            while data := source.recv(_READ_BYTES):
                if heard is not None:
                    heard += data
                self._flows.wait()
                delay_s = self._delays_s[heard is not None]
                if delay_s and deliver is None:
                    deliver = threading.Thread(target=self._deliver, args=(late, sink), daemon=True)
                    deliver.start()
                if deliver is None:
                    sink.sendall(data)
                else:
                    late.put((time.monotonic() + delay_s, data))
        self._hang_up(source, sink)
        late.put((0.0, b""))
        with self._lock:
            # The thread of the other way still reads from the sink, and closes it.
            self._sockets.discard(source)
        source.close()

    def _deliver(self, late: "queue.SimpleQueue[tuple[float, bytes]]", sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (waiting := late.get())[1]:
                due_s, data = waiting
                self._over.wait(max(0.0, due_s - time.monotonic()))
                sink.sendall(data)

    def _hang_up(self, *ends: socket.socket) -> None:
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
