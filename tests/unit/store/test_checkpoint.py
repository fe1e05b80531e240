from pathlib import Path

import msgspec
import pytest

from tanist.errors import ForeignFile
from tanist.store.checkpoint import (
    FILE_BYTES,
    Checkpoint,
    decode_checkpoint,
    encode_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from tanist.store.disk import Disk
from tests.support import golden

CHECKPOINT = Checkpoint(5000, 4000, 3000, 20, 10, indexed_to=700, flushed_to=800, queue_total=9)


def _rocketmqs() -> bytes:
    return bytes.fromhex(golden.load("store_files")["checkpoint"]["file_start"]).ljust(FILE_BYTES, b"\0")


def test_rocketmqs_checkpoint_is_read() -> None:
    case = golden.load("store_files")["checkpoint"]
    checkpoint = decode_checkpoint(_rocketmqs())
    assert checkpoint == Checkpoint(
        case["physic_msg_timestamp"],
        case["logics_msg_timestamp"],
        case["index_msg_timestamp"],
        case["master_flushed_offset"],
        case["confirm_phy_offset"],
    )
    assert checkpoint.recover_from_ms == case["min_timestamp"]


def test_what_rocketmq_reads_is_written_as_it_writes_it() -> None:
    checkpoint = decode_checkpoint(_rocketmqs())
    assert encode_checkpoint(checkpoint)[:40] == _rocketmqs()[:40]


def test_a_checkpoint_comes_back_with_its_offsets() -> None:
    assert decode_checkpoint(encode_checkpoint(CHECKPOINT)) == CHECKPOINT


def test_the_offsets_do_not_count_once_rocketmq_has_changed_the_times() -> None:
    data = _rocketmqs()[:40] + encode_checkpoint(CHECKPOINT)[40:]
    checkpoint = decode_checkpoint(data)
    assert (checkpoint.indexed_to, checkpoint.flushed_to) == (None, None)
    assert checkpoint == decode_checkpoint(_rocketmqs())


@pytest.mark.parametrize("position", range(40, 68))
def test_offsets_with_a_changed_bit_do_not_count(position: int) -> None:
    data = bytearray(encode_checkpoint(CHECKPOINT))
    data[position] ^= 1
    assert decode_checkpoint(bytes(data)).flushed_to is None


def test_the_margin_is_three_seconds_before_the_older_time() -> None:
    assert CHECKPOINT.recover_from_ms == 1000
    assert Checkpoint(2000, 9000).recover_from_ms == 0


def test_all_of_it_lies_in_one_sector() -> None:
    assert len(encode_checkpoint(CHECKPOINT)) <= 512


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert load_checkpoint(Disk(), tmp_path / "checkpoint") == Checkpoint()


def test_a_saved_checkpoint_is_loaded_from_a_file_of_rocketmqs_size(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    for checkpoint in (CHECKPOINT, msgspec.structs.replace(CHECKPOINT, flushed_to=900)):
        save_checkpoint(Disk(), path, checkpoint)
        assert load_checkpoint(Disk(), path) == checkpoint
        assert path.stat().st_size == FILE_BYTES
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_file_knows_nothing_and_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.touch()
    assert load_checkpoint(Disk(), path) == Checkpoint()
    save_checkpoint(Disk(), path, CHECKPOINT)
    assert load_checkpoint(Disk(), path) == CHECKPOINT


@pytest.mark.parametrize("size", [1, 40, FILE_BYTES - 1, FILE_BYTES + 1])
def test_a_file_of_another_size_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "checkpoint").write_bytes(bytes(size))
    with pytest.raises(ForeignFile, match=f"{size} bytes"):
        load_checkpoint(Disk(), tmp_path / "checkpoint")
