"""The log of a broker as it lies on its disk, to be compared with others; and how it gets long quickly."""

from pathlib import Path
from typing import NamedTuple

from tanist.protocol import RequestCode, ResponseCode
from tanist.protocol.batch import encode_batch
from tanist.protocol.record import BLANK_BYTES, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, peek_record
from tests.support.requests import send_request
from tests.support.wire import Wire

BATCH_MESSAGES = 1000


class LogOnDisk(NamedTuple):
    """All records of a log."""

    start: int
    record_count: int
    data: bytes

    @classmethod
    def read(cls, store_dir: Path) -> "LogOnDisk":
        """Read all files, as far as there are records in them. Behind that may be a file made in advance."""
        files = _files(store_dir)
        data = memoryview(_bytes_of(files))
        file_bytes = files[0].stat().st_size if files else 0
        position = record_count = 0
        while len(data) - position >= BLANK_BYTES:
            size_bytes, magic = peek_record(data, position)
            if magic == MAGIC_BLANK:
                position += file_bytes - position % file_bytes
            elif magic in (MAGIC_V1, MAGIC_V2):
                position += size_bytes
                record_count += 1
            else:
                break
        return cls(int(files[0].name) if files else 0, record_count, bytes(data[:position]))


def ends_equal(whole: Path, newer: Path) -> bool:
    """Whether the second store's log is not empty, and is the first's from one of its files on."""
    files, newer_files = _files(whole), _files(newer)
    if not newer_files or newer_files[0].name not in (names := [file.name for file in files]):
        return False
    # To walk over all records is dear, so only where this much is so.
    same_files = files[names.index(newer_files[0].name) :]
    if _bytes_of(same_files).rstrip(b"\0") != _bytes_of(newer_files).rstrip(b"\0"):
        return False
    log, part = LogOnDisk.read(whole), LogOnDisk.read(newer)
    return bool(part.data) and part.data == log.data[part.start - log.start :]


def _files(store_dir: Path) -> list[Path]:
    return sorted((store_dir / "commitlog").iterdir())


def _bytes_of(files: list[Path]) -> bytes:
    return b"".join(file.read_bytes() for file in files)


def send_messages(address: str, count: int, *, first: int) -> None:
    """Send small messages in large batches, numbered from ``first`` on."""
    with Wire(address) as wire:
        for start in range(first, first + count, BATCH_MESSAGES):
            numbers = range(start, min(start + BATCH_MESSAGES, first + count))
            body = encode_batch([(0, b"message %d" % number, b"") for number in numbers])
            request = send_request(body, is_batch=True)
            request.code = RequestCode.SEND_BATCH_MESSAGE
            answer = wire.ask(request)
            assert answer.code == ResponseCode.SUCCESS, answer.remark
