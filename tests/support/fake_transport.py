"""A transport in memory, for what sits on a link."""

import asyncio


class FakeTransport(asyncio.Transport):
    """Keeps what is written, and does what it is told at once."""

    def __init__(self, peername: tuple[str, int] | None = ("127.0.0.1", 40112)) -> None:
        super().__init__({"peername": peername})
        self.written = bytearray()
        self._is_closing = False
        self.is_paused = False
        self.waiting_bytes = 0
        """What it says of what nobody has read yet."""
        self.high_water_bytes: int | None = None

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high_water_bytes = high

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    def abort(self) -> None:
        self._is_closing = True
