import pytest

from tanist.model.epochs import Epoch, EpochHistory, consistent_point
from tanist.model.offsets import LogOffset


def _history(*pairs: tuple[int, int]) -> EpochHistory:
    return EpochHistory(Epoch(epoch, LogOffset(start)) for epoch, start in pairs)


def test_a_history_begins_empty() -> None:
    history = EpochHistory()
    assert history.epochs == ()
    assert history.last is None
    assert history.at(0) is None


def test_epochs_follow_each_other() -> None:
    history = _history((1, 0), (2, 500), (5, 900))
    assert history.epochs == ((1, 0), (2, 500), (5, 900))
    assert history.last == Epoch(5, LogOffset(900))


@pytest.mark.parametrize(("epoch", "start"), [(2, 900), (1, 900), (3, 499), (2, 500), (-1, 900), (3, -1)])
def test_an_epoch_that_does_not_come_after_the_last_is_refused(epoch: int, start: int) -> None:
    history = _history((1, 0), (2, 500))
    with pytest.raises(ValueError, match=f"epoch {epoch} at {start}"):
        history.begin(epoch, start)
    assert history.epochs == ((1, 0), (2, 500))


@pytest.mark.known_bug("RMQ #9689", "RMQ #9942")
def test_an_epoch_that_wrote_nothing_gives_way_to_the_next() -> None:
    history = _history((1, 0), (2, 500))
    history.begin(3, 500)
    assert history.epochs == ((1, 0), (3, 500))


def test_the_first_epoch_may_give_way_too() -> None:
    history = _history((1, 0))
    history.begin(2, 0)
    assert history.epochs == ((2, 0),)


@pytest.mark.parametrize(
    ("log_offset", "epoch"), [(99, None), (100, 1), (499, 1), (500, 2), (899, 2), (900, 5), (10**12, 5)]
)
def test_a_byte_belongs_to_the_epoch_that_began_last_before_it(log_offset: int, epoch: int | None) -> None:
    found = _history((1, 100), (2, 500), (5, 900)).at(log_offset)
    assert (found and found.epoch) == epoch


@pytest.mark.parametrize(
    ("log_offset", "left"),
    [(901, 3), (900, 2), (501, 2), (500, 1), (1, 1), (0, 0)],
)
def test_a_cut_takes_the_epochs_whose_start_is_not_below_it(log_offset: int, left: int) -> None:
    history = _history((1, 0), (2, 500), (5, 900))
    history.cut(log_offset)
    assert history.epochs == ((1, 0), (2, 500), (5, 900))[:left]


def test_after_a_cut_an_epoch_may_begin_where_a_lost_one_did() -> None:
    history = _history((1, 0), (2, 500))
    history.cut(400)
    history.begin(2, 400)
    assert history.epochs == ((1, 0), (2, 400))


@pytest.mark.parametrize(("log_start", "gone"), [(0, 0), (499, 0), (500, 1), (899, 1), (900, 2), (5000, 2)])
def test_epochs_go_when_their_last_byte_is_deleted(log_start: int, gone: int) -> None:
    history = _history((1, 0), (2, 500), (5, 900))
    history.raise_start(log_start)
    assert history.epochs == ((1, 0), (2, 500), (5, 900))[gone:]


def test_the_epochs_that_are_handed_out_do_not_change() -> None:
    history = _history((1, 0))
    epochs = history.epochs
    history.begin(2, 10)
    assert epochs == ((1, 0),)


@pytest.mark.parametrize(
    ("log_offset", "end"), [(0, 100), (99, 100), (100, 500), (899, 900), (900, None), (10**12, None)]
)
def test_an_epoch_ends_where_the_next_begins(log_offset: int, end: int | None) -> None:
    assert _history((1, 100), (2, 500), (5, 900)).end_at(log_offset) == end


# Where two logs last agree


@pytest.mark.behaviour("S2-26")
@pytest.mark.parametrize(
    ("own", "own_end", "master", "master_end", "point"),
    [
        # The last epoch of ours began elsewhere there: what both have of the one before decides.
        (((1, 100), (2, 300), (3, 500)), 700, ((1, 100), (2, 300), (3, 450)), 700, 450),
        # The same epochs: the shorter log.
        (((1, 100), (2, 300), (3, 500)), 700, ((1, 100), (2, 300), (3, 500)), 600, 600),
        (((1, 100), (2, 300), (3, 500)), 600, ((1, 100), (2, 300), (3, 500)), 700, 600),
        # Ours has an epoch that never was there, and the other way round.
        (((1, 0), (2, 300)), 400, ((1, 0), (3, 250)), 900, 250),
        (((1, 0), (2, 300)), 400, ((1, 0), (3, 350)), 900, 300),
        (((1, 0),), 400, ((1, 0), (3, 400)), 900, 400),
        # Ours wrote nothing in its last epoch.
        (((1, 0), (2, 300)), 300, ((1, 0), (3, 350)), 900, 300),
        (((1, 0), (2, 300)), 300, ((1, 0), (2, 300)), 300, 300),
        # Both have deleted old files, each as many as it liked; or the master tells its newest epochs only.
        (((2, 300), (3, 500)), 700, ((3, 500), (4, 650)), 900, 650),
        (((3, 500),), 700, ((1, 0), (2, 300), (3, 500)), 900, 700),
    ],
)
def test_two_logs_agree_up_to_the_end_of_the_newest_epoch_that_both_have(
    own: tuple[tuple[int, int], ...],
    own_end: int,
    master: tuple[tuple[int, int], ...],
    master_end: int,
    point: int,
) -> None:
    assert consistent_point(_history(*own), own_end, _history(*master).epochs, master_end) == point


@pytest.mark.behaviour("S2-27")
@pytest.mark.parametrize(
    ("own", "master"),
    [
        ((), ((1, 0),)),
        (((1, 100),), ()),
        (((1, 100), (3, 600)), ((1, 200), (2, 500))),
        # An epoch that begins behind the end that the master told.
        (((1, 100),), ((1, 100),)),
    ],
)
def test_logs_without_a_common_epoch_have_no_point(
    own: tuple[tuple[int, int], ...], master: tuple[tuple[int, int], ...]
) -> None:
    assert consistent_point(_history(*own), 700, _history(*master).epochs, 99) is None
