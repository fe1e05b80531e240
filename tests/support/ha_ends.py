"""Both ends of a link in memory, on one small log."""

import zlib
from collections.abc import Iterable
from typing import Final

from tanist.ha.actions import MasterAction, SendBytes
from tanist.ha.admission import CrcBefore, MasterLog
from tanist.ha.keys import HaKeys
from tanist.ha.master_link import MasterLink, MasterState
from tanist.ha.slave_link import SlaveLink, SlaveLog
from tanist.protocol.ha_hello import NONCE_BYTES, Authentication
from tanist.protocol.ha_link import AckKind

KEYS: Final = HaKeys("broker-a", Authentication.SECRET, b"a secret of both ends")
LOG: Final = bytes(range(256)) * 16
START: Final = 1024
FILE_BYTES: Final = 1024
INCARNATION: Final = b"i" * 16


def crc_before(log_offset: int, size_bytes: int) -> int:
    return zlib.crc32(LOG[log_offset - size_bytes : log_offset])


def look_at_log() -> MasterLog:
    return MasterLog(
        incarnation=INCARNATION,
        log_start=START,
        log_end=len(LOG),
        file_bytes=FILE_BYTES,
        is_last_file_first=False,
        crc_before=crc_before,
    )


def master_link(nonce: bytes = b"m" * NONCE_BYTES) -> MasterLink:
    return MasterLink(KEYS, nonce, look_at_log, now_s=0.0, heartbeat_s=5.0, silence_s=20.0)


def slave_link(
    log_end: int = len(LOG),
    *,
    keys: HaKeys = KEYS,
    log_start: int = START,
    incarnation: bytes = INCARNATION,
    crc_before: CrcBefore = crc_before,
) -> SlaveLink:
    log = SlaveLog(incarnation, log_start if log_end else 0, log_end, FILE_BYTES, crc_before)
    return SlaveLink(
        keys, 1, b"s" * NONCE_BYTES, log, AckKind.RECEIVED, now_s=0.0, heartbeat_s=5.0, silence_s=20.0
    )


def bytes_of(actions: Iterable[object]) -> bytes:
    return b"".join(action.data for action in actions if isinstance(action, SendBytes))


def meet(slave: SlaveLink, master: MasterLink) -> tuple[list[bytes], list[MasterAction]]:
    """Let both ends come to a verdict: what the slave said, and what the master did at last."""
    hello = bytes_of(slave.on_connected())
    answer = bytes_of(master.on_bytes(hello, now_s=0.1))
    proof = bytes_of(slave.on_bytes(memoryview(answer), now_s=0.2)[0])
    return [hello, proof], master.on_bytes(proof, now_s=0.3)


def let_in(log_end: int = len(LOG)) -> MasterLink:
    """The master's end of a link to a slave that is what it says."""
    master = master_link()
    meet(slave_link(log_end), master)
    assert master.state is MasterState.TRANSFER
    return master
