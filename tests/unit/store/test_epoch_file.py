from pathlib import Path

import pytest

from tanist.errors import ForeignFile, RemoteProtocolError
from tanist.model.epochs import Epoch, EpochHistory
from tanist.model.offsets import LogOffset
from tanist.store.disk import Disk
from tanist.store.epoch_file import FILE_NAME, EpochFile, StoredEpochs, decode_epochs, encode_epochs
from tests.support import golden

HISTORY = EpochHistory([Epoch(1, LogOffset(0)), Epoch(2, LogOffset(500)), Epoch(5, LogOffset(900))])
TEXT = b"3\n435744268\n1-0\n2-500\n5-900\n"


def test_the_file_is_rocketmqs_to_the_byte() -> None:
    case = golden.load("store_files")["epochs"]
    assert encode_epochs(HISTORY) == case["text"].encode() == TEXT
    assert [list(epoch) for epoch in decode_epochs(case["text"].encode()).epochs] == case["entries"]


def test_a_checksum_of_zero_is_not_checked() -> None:
    assert decode_epochs(b"1\n0\n7-42\n").epochs == ((7, 42),)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (TEXT.replace(b"2-500", b"2-501"), "checksum"),
        (TEXT.replace(b"435744268", b"435744269"), "checksum"),
        (TEXT[: -len(b"5-900\n")], "3 epochs are announced and 2 are there"),
        (TEXT + b"6-950\n", "announced"),
        (b"2\n0\n2-500\n1-600\n", "does not come after"),
        (b"2\n0\n1-500\n2-400\n", "does not come after"),
        (b"1\n0\n1-500-3\n", "not an epoch file"),
        (b"1\n0\n-1-500\n", "not an epoch file"),
        (b"1\n0\nx-y\n", "not an epoch file"),
        (b"x\n0\n", "not an epoch file"),
        (b"3\n", "not an epoch file"),
        ("1\n0\n1-\u0663\n".encode(), "not an epoch file"),
    ],
)
def test_anything_but_a_whole_matching_file_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        decode_epochs(data)


def test_a_store_without_a_controller_has_no_epochs(tmp_path: Path) -> None:
    assert EpochFile(Disk(), tmp_path).load().epochs == ()


def test_epochs_that_are_saved_are_loaded(tmp_path: Path) -> None:
    EpochFile(Disk(), tmp_path).save(HISTORY)
    assert (tmp_path / FILE_NAME).read_bytes() == TEXT
    assert EpochFile(Disk(), tmp_path).load().epochs == HISTORY.epochs


def test_a_file_with_a_wrong_checksum_gives_way_to_its_backup(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(TEXT.replace(b"5-900", b"5-901"))
    (tmp_path / f"{FILE_NAME}.bak").write_bytes(b"1\n0\n1-0\n")
    assert EpochFile(Disk(), tmp_path).load().epochs == ((1, 0),)


def test_a_file_with_a_wrong_checksum_and_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(TEXT.replace(b"5-900", b"5-901"))
    with pytest.raises(ForeignFile, match="checksum"):
        EpochFile(Disk(), tmp_path).load()


# The epochs of an open store


def test_every_change_of_the_epochs_is_on_disk(tmp_path: Path) -> None:
    epochs = StoredEpochs(Disk(), tmp_path)
    for change, expected in (
        (lambda: epochs.begin(1, 0), ((1, 0),)),
        (lambda: epochs.begin(2, 500), ((1, 0), (2, 500))),
        (lambda: epochs.begin(5, 900), ((1, 0), (2, 500), (5, 900))),
        (lambda: epochs.cut(900), ((1, 0), (2, 500))),
        (lambda: epochs.raise_start(600), ((2, 500),)),
        (lambda: epochs.raise_start(600), ((2, 500),)),
    ):
        change()
        assert epochs.history.epochs == EpochFile(Disk(), tmp_path).load().epochs == expected
