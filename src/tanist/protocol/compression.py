"""Compressed bodies: zlib, LZ4 (frame format) and Zstandard, as the system flag says.

A few bytes can claim to be gigabytes. Every decompressor here stops at the caller's bound while it
works, so a lie costs at most that many bytes of memory. One whole stream and nothing behind it is
what a producer writes; anything else is refused rather than cut short in silence.
"""

import zlib
from enum import IntEnum
from importlib import import_module
from types import ModuleType

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.message import COMPRESSION_MASK, SysFlag

LEVEL = 5
MAX_ZSTD_WINDOW_BYTES = 1 << 23
"""The window that every Zstandard decoder must support; a frame that asks for more is refused."""

_ZSTD_BLOCK_HEAD_BYTES = 3
_ZSTD_RLE_BLOCK = 1
_ZSTD_CHECKSUM_BYTES = 4


class Compression(IntEnum):
    """The types, as bits of the system flag. No bit at all means zlib too: old clients write that."""

    LZ4 = 0x100
    ZSTD = 0x200
    ZLIB = 0x300


def compress_body(body: bytes | memoryview, sys_flag: int) -> bytes:
    """Compress with the type that ``sys_flag`` names."""
    match sys_flag & COMPRESSION_MASK:
        case 0 | Compression.ZLIB:
            return zlib.compress(body, LEVEL)
        case Compression.LZ4:
            return _load("lz4.frame").compress(body)
        case Compression.ZSTD:
            return _load("zstandard").ZstdCompressor(level=LEVEL).compress(body)
        case unknown:
            raise LocalProtocolError(f"{unknown:#x} is no compression type")


def decompress_body(body: bytes | memoryview, sys_flag: int, *, max_bytes: int) -> bytes | memoryview:
    """The body as its producer wrote it; the same object if ``sys_flag`` says that it is not compressed.

    Raises RemoteProtocolError if it is not one whole stream, or gives more than ``max_bytes``.
    """
    if not sys_flag & SysFlag.COMPRESSED:
        return body
    match sys_flag & COMPRESSION_MASK:
        case 0 | Compression.ZLIB:
            return _decompress_zlib(body, max_bytes)
        case Compression.LZ4:
            return _decompress_lz4(body, max_bytes)
        case Compression.ZSTD:
            return _decompress_zstd(body, max_bytes)
        case unknown:
            raise RemoteProtocolError(f"{unknown:#x} is no compression type")


def _decompress_zlib(body: bytes | memoryview, max_bytes: int) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        # One byte more than allowed: that it comes is how we know.
        plain = decompressor.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise RemoteProtocolError(f"the body is no zlib stream: {error}") from error
    return _checked(
        plain, max_bytes, is_whole=decompressor.eof, is_followed=bool(decompressor.unused_data), stream="zlib"
    )


def _decompress_lz4(body: bytes | memoryview, max_bytes: int) -> bytes:
    decompressor = _load("lz4.frame").LZ4FrameDecompressor()
    try:
        plain: bytes = decompressor.decompress(body, max_length=max_bytes + 1)
    except RuntimeError as error:
        raise RemoteProtocolError(f"the body is no LZ4 frame: {error}") from error
    return _checked(
        plain, max_bytes, is_whole=decompressor.eof, is_followed=bool(decompressor.unused_data), stream="LZ4"
    )


def _checked(plain: bytes, max_bytes: int, *, is_whole: bool, is_followed: bool, stream: str) -> bytes:
    if len(plain) > max_bytes:
        raise RemoteProtocolError(f"the body has more than {max_bytes} bytes when decompressed")
    if not is_whole:
        raise RemoteProtocolError(f"the body's {stream} stream is cut short")
    if is_followed:
        raise RemoteProtocolError(f"bytes follow the body's {stream} stream")
    return plain


def _decompress_zstd(body: bytes | memoryview, max_bytes: int) -> bytes:
    zstandard = _load("zstandard")
    try:
        parameters = zstandard.get_frame_parameters(body)
        if zstandard.frame_content_size(body) > max_bytes:
            raise RemoteProtocolError(f"the body has more than {max_bytes} bytes when decompressed")
        header_bytes: int = zstandard.frame_header_size(body)
        if _zstd_frame_end(memoryview(body), header_bytes, has_checksum=parameters.has_checksum) != len(body):
            raise RemoteProtocolError("the body is not exactly one Zstandard frame")
        # A frame that says its size was just checked; one that does not is held to max_output_size.
        decompressor = zstandard.ZstdDecompressor(max_window_size=max(MAX_ZSTD_WINDOW_BYTES, max_bytes))
        return decompressor.decompress(body, max_output_size=max_bytes)
    except zstandard.ZstdError as error:
        raise RemoteProtocolError(
            f"the body is no Zstandard frame of at most {max_bytes} bytes: {error}"
        ) from error


def _zstd_frame_end(view: memoryview, position: int, *, has_checksum: bool) -> int:
    """Where the frame ends, by its block heads: the decompressor does not say what it left over."""
    is_last = False
    while not is_last and position < len(view):
        head = int.from_bytes(view[position : position + _ZSTD_BLOCK_HEAD_BYTES], "little")
        is_last = bool(head & 1)
        content_bytes = 1 if head >> 1 & 3 == _ZSTD_RLE_BLOCK else head >> 3
        position += _ZSTD_BLOCK_HEAD_BYTES + content_bytes
    return position + (_ZSTD_CHECKSUM_BYTES if has_checksum else 0)


def _load(module: str) -> ModuleType:
    """LZ4 and Zstandard are optional, so they are imported when a body needs them."""
    try:
        return import_module(module)
    except ImportError as error:
        raise LocalProtocolError(
            f"this body needs the package {module.split('.', maxsplit=1)[0]}, which is not installed; "
            "install tanist[compression]"
        ) from error
