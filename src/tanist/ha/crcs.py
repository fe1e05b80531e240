"""The checksums of what a master sends to all its slaves alike. Pure."""

from tanist.protocol.crc import crc32


class Crcs:
    """The CRC of the frame's body that was sent last: all slaves in step are sent the same."""

    def __init__(self) -> None:
        self._range = (-1, -1)
        self._crc = 0

    def of(self, log_offset: int, body: bytes | memoryview) -> int:
        if self._range != (log_offset, len(body)):
            self._crc = crc32(body)
            self._range = (log_offset, len(body))
        return self._crc
