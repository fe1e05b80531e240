"""The CRC-32 of zlib, as fast as this machine takes it.

Every byte of the log is summed when it is sent to a slave and when it comes there, so of what a catch-up
cost a third was the checksum. Many processors have an instruction for it that zlib does not use; C does where
it could be built, and is several times as fast.
"""

import zlib
from typing import Protocol

from tanist.protocol.compiled import native


class _Crc32(Protocol):
    def __call__(self, data: bytes | bytearray | memoryview, value: int = 0, /) -> int: ...


crc32: _Crc32 = native.crc32 if native is not None and native.HAS_FAST_CRC else zlib.crc32
"""The CRC of some data, going on from ``value``, that of what lies before it."""
