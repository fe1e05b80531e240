from tanist.ha.epoch_log import EpochLog
from tanist.protocol.ha_hello import MAX_EPOCHS
from tests.support.links import epochs_of


def _log(*epochs: tuple[int, int]) -> EpochLog:
    return EpochLog(epochs[-1][0], lambda: epochs_of(*epochs), lambda: 0)


def test_bytes_from_before_the_first_epoch_are_of_none() -> None:
    log = _log((3, 100), (4, 200))
    assert [log.epoch_at(log_offset) for log_offset in (0, 99, 100, 199, 200, 999)] == [0, 0, 3, 3, 4, 4]


def test_a_frame_ends_where_its_epoch_does() -> None:
    log = _log((3, 100), (4, 200))
    assert [log.bytes_left(log_offset, 64) for log_offset in (0, 90, 100, 150, 200, 999)] == [
        *(64, 10, 64, 50, 64, 64)
    ]


def test_a_slave_is_told_the_newest_epochs_that_fit() -> None:
    log = _log(*((number, number) for number in range(1, MAX_EPOCHS + 4)))
    told = log.newest_epochs
    assert (len(told), told[-1].epoch, told[0].epoch) == (MAX_EPOCHS, MAX_EPOCHS + 3, 4)
