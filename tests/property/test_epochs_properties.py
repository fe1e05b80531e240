"""Replicas that take turns as master, die, come back and align: each byte knows who wrote it."""

from dataclasses import dataclass, field
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.model.epochs import EpochHistory, consistent_point


@dataclass
class _Replica:
    """A log whose bytes are the numbers of the epochs that they are of."""

    log: list[int] = field(default_factory=list[int])
    epochs: EpochHistory = field(default_factory=EpochHistory)

    def reign(self, epoch: int, count: int) -> None:
        self.epochs.begin(epoch, len(self.log))
        self.log += [epoch] * count

    def follow(self, master: "_Replica", count: int) -> None:
        """Align, then take so many bytes more."""
        if self.epochs.epochs:
            point = consistent_point(self.epochs, len(self.log), master.epochs.epochs, len(master.log))
            assert point == _common(self, master)
            if point is None:
                return
            del self.log[point:]
            self.epochs.cut(point)
        for log_offset in range(len(self.log), min(len(self.log) + count, len(master.log))):
            epoch = master.epochs.at(log_offset)
            assert epoch is not None
            if self.epochs.last != epoch:
                self.epochs.begin(*epoch)
            self.log.append(epoch.epoch)


def _common(one: _Replica, other: _Replica) -> int | None:
    """How many bytes both logs have in common; None if not even their first epoch."""
    pairs = zip(one.log, other.log, strict=False)
    count = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return count if count or set(one.epochs.epochs) & set(other.epochs.epochs) else None


_STEPS = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 4), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)))
    ),
    max_size=12,
)


@pytest.mark.behaviour("S2-26")
@given(_STEPS)
def test_the_point_is_where_the_logs_first_differ_whoever_was_master(
    steps: list[tuple[int, int, list[tuple[int, int]]]],
) -> None:
    replicas = [_Replica() for _ in range(3)]
    for number, (master, count, followers) in enumerate(steps):
        replicas[master].reign(number + 1, count)
        for follower, taken in followers:
            if follower != master:
                replicas[follower].follow(replicas[master], taken)
                shared = len(replicas[follower].log)
                if _common(replicas[follower], replicas[master]) is not None:
                    assert replicas[follower].log == replicas[master].log[:shared]
