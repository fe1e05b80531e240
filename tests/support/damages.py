"""What a disk, or a hand, can do to one file: seven ways to damage it, each at a place that a seed draws."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

PAGE_BYTES: Final = 4096
_CHUNK_BYTES: Final = 64

Damage = Callable[[Path, Path, random.Random], None]
"""Damages a file, beside which an earlier version of it is named."""


def _written_end(content: bytearray) -> int:
    """Where the zeros begin with which a file was made: damage there would hit nothing."""
    return max(len(content.rstrip(b"\0")), 1)


def flip_a_bit(path: Path, _older: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(_written_end(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def zero_a_page(path: Path, _older: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    start = rng.randrange(-(-_written_end(content) // PAGE_BYTES)) * PAGE_BYTES
    end = min(start + PAGE_BYTES, len(content))
    content[start:end] = bytes(end - start)
    path.write_bytes(content)


def empty(path: Path, _older: Path, _rng: random.Random) -> None:
    path.write_bytes(b"")


def cut_in_half(path: Path, _older: Path, _rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def cut_by_a_byte(path: Path, _older: Path, _rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def copy_a_chunk(path: Path, _older: Path, rng: random.Random) -> None:
    """Write one piece of the file over another, as a disk does that mistakes an address."""
    content = bytearray(path.read_bytes())
    end = _written_end(content)
    size = min(_CHUNK_BYTES, max(end // 4, 1))
    source, target = (rng.randrange(max(end - size, 1)) for _ in range(2))
    content[target : target + size] = content[source : source + size]
    path.write_bytes(content)


def bring_back_the_older(path: Path, older: Path, _rng: random.Random) -> None:
    if older.exists():
        path.write_bytes(older.read_bytes())
    else:
        path.unlink()


DAMAGES: Final[Mapping[str, Damage]] = {
    "a flipped bit": flip_a_bit,
    "a zeroed page": zero_a_page,
    "emptied": empty,
    "cut in half": cut_in_half,
    "cut by a byte": cut_by_a_byte,
    "a copied chunk": copy_a_chunk,
    "an older version": bring_back_the_older,
}
