"""Replicas that take turns as master over links that break after any byte: logs and epochs stay one."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.ha.actions import CloseKind
from tanist.model.epochs import Epoch, EpochHistory
from tests.support.links import INCARNATION, Bytes, MasterSide, SlaveSide

_NEVER = 1 << 20


@dataclass
class _Replica:
    log: Bytes = field(default_factory=Bytes)
    epochs: EpochHistory = field(default_factory=EpochHistory)
    confirmed_to: int = 0

    def reign(self, epoch: int, count: int) -> None:
        self.epochs.begin(epoch, self.log.end)
        self.log.data += bytes((7 * epoch + number) % 251 for number in range(count))

    def parts(self) -> list[tuple[Epoch | None, int]]:
        """Who wrote each byte."""
        return [(self.epochs.at(at), byte) for at, byte in enumerate(self.log.data)]


def _common(one: _Replica, other: _Replica) -> int:
    pairs = list(zip(one.parts(), other.parts(), strict=False))
    return next((at for at, (ours, theirs) in enumerate(pairs) if ours != theirs), len(pairs))


def _follow(slave: _Replica, master: _Replica, epoch: int, lost_after: int) -> SlaveSide:
    """One link, which breaks when the slave has read so many bytes."""
    end = MasterSide(master.log, epoch=epoch, epochs=master.epochs, confirmed_to=slave.confirmed_to)
    side = SlaveSide(
        slave.log,
        incarnation=INCARNATION,
        epoch=epoch,
        epochs=slave.epochs,
        known_confirmed_to=slave.confirmed_to,
    )
    to_master = side.begin()
    while to_master and lost_after > 0:
        to_slave = end.hear(to_master)[:lost_after]
        lost_after -= len(to_slave)
        to_master = side.hear(to_slave) if to_slave else b""
    return side


_TURNS = st.lists(
    st.tuples(
        st.integers(0, 2),
        # A reign without a message is what is hard to get right.
        st.sampled_from([0, 250]),
        st.lists(st.tuples(st.integers(0, 2), st.integers(300, 1000) | st.just(_NEVER)), max_size=3),
    ),
    max_size=8,
)


@pytest.mark.behaviour("S2-25", "S2-26", "S2-27", "S2-34")
@settings(deadline=None)
@given(_TURNS)
def test_whoever_was_master_and_wherever_links_broke_a_slave_ends_with_its_masters_log(
    turns: list[tuple[int, int, list[tuple[int, int]]]],
) -> None:
    replicas = [_Replica() for _ in range(3)]
    for number, (named, count, followers) in enumerate(turns):
        epoch, master = number + 1, replicas[named]
        master.reign(epoch, count)
        for other, lost_after in followers:
            slave = replicas[other]
            if slave is master:
                continue
            common, before = _common(slave, master), slave.log.data
            side = _follow(slave, master, epoch, lost_after)
            assert slave.log.data.startswith(before[:common]), "what both had is lost"
            if side.closed is not None:
                assert side.closed.kind is CloseKind.REFUSED
                assert "no epoch in common" in side.closed.reason
                assert (common, slave.log.data) == (0, before)
            elif side.link.is_transferring:
                assert slave.log.data == master.log.data[: slave.log.end]
                assert slave.epochs.epochs == tuple(
                    told for told in master.epochs.epochs if told in slave.epochs.epochs
                )
                assert [part[0] for part in slave.parts()] == [
                    part[0] for part in master.parts()[: slave.log.end]
                ]
            if lost_after == _NEVER and side.closed is None:
                assert slave.log.data == master.log.data
