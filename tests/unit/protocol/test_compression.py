import struct
import tracemalloc
import zlib

import lz4.frame
import pytest
import zstandard

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.protocol import compression
from tanist.protocol.compression import Compression, compress_body, decompress_body

BODY = b"the same words again and again, " * 300
FLAGS = [0x1, 0x1 | Compression.ZLIB, 0x1 | Compression.LZ4, 0x1 | Compression.ZSTD]
BOMB_BYTES = 64 << 20


@pytest.mark.parametrize("flag", FLAGS)
def test_a_body_comes_back_as_it_was(flag: int) -> None:
    for body in (BODY, b"", b"x"):
        packed = compress_body(body, flag)
        assert decompress_body(packed, flag, max_bytes=len(BODY)) == body
        assert decompress_body(memoryview(packed), flag, max_bytes=len(BODY)) == body
    assert len(compress_body(BODY, flag)) < len(BODY) // 10


def test_a_body_that_is_not_compressed_is_left_alone() -> None:
    assert decompress_body(BODY, Compression.ZSTD, max_bytes=1) is BODY


def test_no_type_means_zlib() -> None:
    assert decompress_body(zlib.compress(BODY), 0x1, max_bytes=len(BODY)) == BODY
    assert decompress_body(zlib.compress(BODY), 0x301, max_bytes=len(BODY)) == BODY


def test_frames_that_do_not_say_their_size_are_read() -> None:
    packed = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(BODY)
    assert decompress_body(packed, 0x201, max_bytes=len(BODY)) == BODY
    packed = bytes(lz4.frame.compress(BODY, store_size=False))  # pyright: ignore[reportUnknownArgumentType]
    assert decompress_body(packed, 0x101, max_bytes=len(BODY)) == BODY


@pytest.mark.parametrize("flag", FLAGS)
def test_the_bound_is_exact(flag: int) -> None:
    packed = compress_body(BODY, flag)
    assert decompress_body(packed, flag, max_bytes=len(BODY)) == BODY
    with pytest.raises(RemoteProtocolError):
        decompress_body(packed, flag, max_bytes=len(BODY) - 1)


def _bombs() -> list[tuple[int, bytes]]:
    zeros = bytes(BOMB_BYTES)
    return [
        (0x301, zlib.compress(zeros)),
        (0x101, lz4.frame.compress(zeros)),
        (0x101, lz4.frame.compress(zeros, store_size=False)),
        (0x201, zstandard.ZstdCompressor().compress(zeros)),
        (0x201, zstandard.ZstdCompressor(write_content_size=False).compress(zeros)),
    ]


def test_a_bomb_costs_no_more_than_the_bound() -> None:
    for flag, bomb in _bombs():
        decompress_body(compress_body(BODY, flag), flag, max_bytes=len(BODY))
        tracemalloc.start()
        with pytest.raises(RemoteProtocolError):
            decompress_body(bomb, flag, max_bytes=1 << 20)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak_bytes < 3 << 20


@pytest.mark.parametrize("flag", FLAGS)
def test_one_whole_stream_and_nothing_else_is_taken(flag: int) -> None:
    packed = compress_body(BODY, flag)
    for bad in (b"", b"x", packed[:-1], packed[:5], packed + b"x", packed + packed, b"x" + packed):
        with pytest.raises(RemoteProtocolError):
            decompress_body(bad, flag, max_bytes=4 * len(BODY))


def test_bytes_behind_a_zstandard_frame_of_unsaid_size_are_refused() -> None:
    packed = zstandard.ZstdCompressor(write_content_size=False).compress(BODY)
    for bad in (packed + b"x", packed + packed, packed[:-1]):
        with pytest.raises(RemoteProtocolError):
            decompress_body(bad, 0x201, max_bytes=4 * len(BODY))


def test_a_zstandard_frame_that_wants_a_huge_window_is_refused() -> None:
    # Magic, a descriptor without content size, window 2**31, one empty last block.
    frame = b"\x28\xb5\x2f\xfd" + b"\x00" + bytes(((31 - 10) << 3,)) + b"\x01\x00\x00"
    with pytest.raises(RemoteProtocolError):
        decompress_body(frame, 0x201, max_bytes=1 << 20)


def test_a_zstandard_frame_that_claims_four_exabytes_is_refused() -> None:
    frame = b"\x28\xb5\x2f\xfd" + b"\xe0" + struct.pack("<Q", 1 << 62) + b"\x01\x00\x00"
    with pytest.raises(RemoteProtocolError):
        decompress_body(frame, 0x201, max_bytes=1 << 20)


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="0x700"):
        decompress_body(BODY, 0x701, max_bytes=1 << 20)
    with pytest.raises(LocalProtocolError, match="0x400"):
        compress_body(BODY, 0x400)


def _absent(name: str) -> None:
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("flag", [0x101, 0x201])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    flag: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "import_module", _absent)
    with pytest.raises(LocalProtocolError, match=r"tanist\[compression\]"):
        compress_body(BODY, flag)
    with pytest.raises(LocalProtocolError, match=r"tanist\[compression\]"):
        decompress_body(BODY, flag, max_bytes=1)


def test_zlib_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "import_module", _absent)
    assert decompress_body(compress_body(BODY, 0x1), 0x1, max_bytes=len(BODY)) == BODY
