from pathlib import Path

import pytest

from tanist.broker.slave_consume.saved import FILE_NAME, SavedStanding, SavedStandingFile
from tanist.errors import ForeignFile
from tanist.model.offsets import QueueOffset
from tanist.store.disk import Disk


def test_a_broker_that_saved_nothing_has_adopted_nothing(tmp_path: Path) -> None:
    assert SavedStandingFile(Disk(), tmp_path).load() == SavedStanding()
    assert list(tmp_path.iterdir()) == []


def test_what_was_saved_last_is_there_after_a_restart(tmp_path: Path) -> None:
    file = SavedStandingFile(Disk(), tmp_path)
    file.save(SavedStanding(adopted_term=1, adopted_round=1))
    last = SavedStanding(
        adopted_term=3,
        adopted_round=2,
        base_term=4,
        base={"TopicA@g": {0: QueueOffset(7), 1: QueueOffset(0)}},
    )
    file.save(last)
    assert SavedStandingFile(Disk(), tmp_path).load() == last


def test_the_backup_stands_in_for_a_damaged_file(tmp_path: Path) -> None:
    file = SavedStandingFile(Disk(), tmp_path)
    file.save(SavedStanding(adopted_term=1))
    file.save(SavedStanding(adopted_term=2))
    (tmp_path / "config" / FILE_NAME).write_bytes(b"\xff{")
    assert SavedStandingFile(Disk(), tmp_path).load() == SavedStanding(adopted_term=1)


@pytest.mark.parametrize("text", ["[]", '{"adoptedTerm": "x"}', "{", '{"base": {"TopicA@g": {"x": 1}}}'])
def test_a_standing_that_can_not_be_read_is_not_begun_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / FILE_NAME).write_text(text)
    with pytest.raises(ForeignFile, match=FILE_NAME):
        SavedStandingFile(Disk(), tmp_path).load()
