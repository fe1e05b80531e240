"""What strangers say to a replication port. The same attacks are played on any master, ours or RocketMQ's.

An attack is a list of calls, each a list of pieces: every call has a connection of its own, and after
every piece there is a pause in which the master may answer. Pure; ``intruder`` plays them.

Offsets are said in the classic framing of RocketMQ, eight bytes each, which is all that a master of
RocketMQ understands.
"""

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

_REPORT = struct.Struct(">q")

TELNET_SLIP: Final = b"999999999\r\n"
"""The famous one. Its first eight bytes are the number 4123389851770370361."""
HUGE: Final = 1 << 62
RANDOM_COUNT: Final = 100
_MAX_RANDOM_BYTES = 64
_SEED = 20240607
# Of two reports in one read a master of RocketMQ sees the second alone.
_OWN_READ_S = 1.5


@dataclass(frozen=True, slots=True)
class Ground:
    """What an attacker knows of the log it lies about."""

    log_start: int
    log_end: int
    """Where a record ends and none begins yet."""
    session: bytes
    """What a good slave said in a recorded session."""

    @property
    def mid_record(self) -> int:
        return self.log_end - 11


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to lie to a master."""

    name: str
    calls: Callable[[Ground], Sequence[Sequence[bytes]]]
    pause_s: float = 0.2
    """How long an answer is waited for after each piece."""


def report(log_offset: int) -> bytes:
    """What a classic slave says that holds the log up to here, or says so."""
    return _REPORT.pack(log_offset)


def random_strings(count: int, *, seed: int = _SEED, max_bytes: int = _MAX_RANDOM_BYTES) -> list[bytes]:
    """The same ones every time, of all lengths."""
    chance = random.Random(seed)
    return [chance.randbytes(chance.randint(1, max_bytes)) for _ in range(count)]


def prefixes(session: bytes, *, max_count: int = 64) -> list[bytes]:
    """Every beginning of a session, the whole one left out; of a long one, as many from its front."""
    return [session[:end] for end in range(min(len(session), max_count))]


def _one_call(*say: Callable[[Ground], bytes]) -> Callable[[Ground], list[list[bytes]]]:
    return lambda ground: [[piece(ground) for piece in say]]


def _report_of(offset: Callable[[Ground], int]) -> Callable[[Ground], bytes]:
    return lambda ground: report(offset(ground))


_HONEST = _report_of(lambda ground: ground.log_end)

ATTACKS: Final = (
    Attack("the telnet slip", _one_call(lambda _: TELNET_SLIP)),
    Attack(
        "random byte strings",
        lambda _: [[said] for said in random_strings(RANDOM_COUNT)],
        pause_s=0.01,
    ),
    Attack(
        "every prefix of a recorded session",
        lambda ground: [[said] for said in prefixes(ground.session)],
        pause_s=0.01,
    ),
    Attack("a recorded session, replayed", _one_call(lambda ground: ground.session)),
    Attack(
        "an ack beyond the end",
        _one_call(_HONEST, _report_of(lambda ground: ground.log_end + (1 << 20))),
        pause_s=_OWN_READ_S,
    ),
    Attack(
        "an ack that goes back",
        _one_call(_HONEST, _report_of(lambda ground: ground.log_end // 2)),
        pause_s=_OWN_READ_S,
    ),
    Attack("a negative ack", _one_call(_HONEST, _report_of(lambda _: -5)), pause_s=_OWN_READ_S),
    Attack("first report 2^62", _one_call(_report_of(lambda _: HUGE))),
    Attack("first report negative", _one_call(_report_of(lambda _: -2))),
    Attack("first report inside a record", _one_call(_report_of(lambda ground: ground.mid_record))),
    Attack("first report below the log's start", _one_call(_report_of(lambda ground: ground.log_start // 2))),
    Attack("silence", _one_call(lambda _: b"")),
    Attack(
        "one byte a second",
        lambda ground: [[bytes([byte]) for byte in ground.session[:10]]],
        pause_s=1.0,
    ),
)
