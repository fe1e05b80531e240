from pathlib import Path

from tanist.broker.transactions.progress import TransactionProgress
from tests.support.broker_tables import open_offsets


def test_offsets_are_kept_when_the_log_is_durable_up_to_where_they_were_found(tmp_path: Path) -> None:
    offsets = open_offsets(tmp_path)
    progress = TransactionProgress(offsets)
    progress.advance(3, 1, log_end=900, flushed_to=500)
    assert not progress.is_kept
    progress.advance(5, 2, log_end=1200, flushed_to=899)
    assert TransactionProgress(offsets).half_offset == 0
    progress.advance(5, 2, log_end=1200, flushed_to=900)
    assert (TransactionProgress(offsets).half_offset, TransactionProgress(offsets).note_offset) == (3, 1)
    progress.advance(5, 2, log_end=1300, flushed_to=1300)
    assert progress.is_kept
    assert (TransactionProgress(offsets).half_offset, TransactionProgress(offsets).note_offset) == (5, 2)


def test_a_broker_without_transactions_keeps_no_offsets(tmp_path: Path) -> None:
    offsets = open_offsets(tmp_path)
    progress = TransactionProgress(offsets)
    progress.advance(0, 0, log_end=900, flushed_to=900)
    progress.finish(0, 0)
    assert progress.is_kept
    assert not offsets.is_dirty


def test_offsets_that_were_ahead_of_the_log_are_taken_back(tmp_path: Path) -> None:
    offsets = open_offsets(tmp_path)
    TransactionProgress(offsets).finish(50, 9)
    progress = TransactionProgress(offsets)
    progress.advance(4, 1, log_end=900, flushed_to=900)
    progress.advance(4, 1, log_end=900, flushed_to=900)
    assert TransactionProgress(offsets).half_offset == 4
