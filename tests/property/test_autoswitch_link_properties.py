"""Both ends of an auto-switch link, whatever becomes of the connections between them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.ha.actions import (
    AppendLog,
    BeginEpoch,
    CloseLink,
    ConfirmTo,
    FollowLog,
    MasterAction,
    SendBytes,
    SlaveAction,
    StartTransfer,
    TakeAck,
    TellEpochs,
    TruncateTo,
)
from tanist.ha.crcs import Crcs
from tanist.model.epochs import EpochHistory
from tanist.store import MessageStore
from tests.support.autoswitch import log_bytes, master_link, open_reigns, slave_link

_REIGNS = ((1, 9), (2, 1), (4, 12), (5, 2), (7, 20))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageStore]:
    """Records that are smaller and larger than a frame, in several files and epochs."""
    with open_reigns(tmp_path_factory.mktemp("store"), _REIGNS, body_bytes=60) as store:
        yield store


@dataclass
class _Pair:
    """Both ends, and the bytes on their way."""

    store: MessageStore
    batch_bytes: int
    held: bytearray = field(default_factory=bytearray)
    """The slave's log."""
    epochs: EpochHistory = field(default_factory=EpochHistory)
    """The slave's epochs."""

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        """A new connection: what was on its way is lost. A slave cuts half a record off before it calls."""
        self.master = master_link(self.store, batch_bytes=self.batch_bytes)
        self.slave = slave_link(len(self.held), self.epochs)
        self.to_slave, self.to_master = bytearray(), bytearray()
        self.do_slave(self.slave.on_connected())

    def send(self) -> None:
        """The master sends one more frame."""
        master, log = self.master, self.store.log
        if master.is_transferring and master.sent_to < log.log_end:
            body = bytes(log.read_ahead(master.sent_to, master.max_body_bytes))
            self.to_slave += master.header(master.sent_to, body, log_end=log.log_end, crcs=Crcs())
            self.to_slave += body
            master.on_sent(master.sent_to + len(body), now_s=100.0)

    def beat(self) -> None:
        self.do_master(self.master.on_tick(log_end=self.store.log.log_end, now_s=106.0))

    def hear(self, size_bytes: int) -> None:
        """So many bytes of the slave's arrive."""
        data, self.to_master = bytes(self.to_master[:size_bytes]), self.to_master[size_bytes:]
        self.do_master(self.master.on_bytes(data, now_s=100.0))
        if self.master.is_transferring:
            assert self.master.acked_to <= len(self.held)

    def deliver(self, size_bytes: int) -> None:
        """So many bytes of the master's arrive."""
        data, self.to_slave = bytes(self.to_slave[:size_bytes]), self.to_slave[size_bytes:]
        actions, _ = self.slave.on_bytes(memoryview(data), now_s=100.0)
        self.do_slave(actions)
        self.do_slave(self.slave.on_held(self.slave.log_end, now_s=100.0))

    def do_master(self, actions: list[MasterAction]) -> None:
        for action in actions:
            assert isinstance(action, SendBytes | StartTransfer | TakeAck), action
            if isinstance(action, SendBytes):
                self.to_slave += action.data

    def do_slave(self, actions: list[SlaveAction]) -> None:
        for action in actions:
            match action:
                case SendBytes(data):
                    self.to_master += data
                case AppendLog(log_offset, body):
                    assert log_offset == len(self.held)
                    self.held += body
                    self.slave.on_appended(len(self.held))
                case BeginEpoch(epoch, start):
                    assert start == len(self.held)
                    self.epochs.begin(epoch, start)
                case TruncateTo(log_offset):
                    del self.held[log_offset:]
                    self.epochs.cut(log_offset)
                    self.do_slave(self.slave.on_truncated())
                case ConfirmTo(confirmed_to):
                    assert confirmed_to <= len(self.held)
                case FollowLog() | TellEpochs():
                    pass
                case _:
                    raise AssertionError(action)

    def follow_to_end(self) -> None:
        while len(self.held) < self.store.log.log_end:
            self.hear(len(self.to_master))
            self.send()
            self.deliver(len(self.to_slave))


_STEPS = st.lists(
    st.one_of(
        st.sampled_from(["send", "beat", "connect"]),
        st.tuples(st.sampled_from(["deliver", "hear"]), st.integers(1, 2000)),
    ),
    max_size=60,
)


def _whole_records_only(pair: _Pair, whole: bytes) -> None:
    """As before a slave connects: of a record that came in part it keeps nothing."""
    end = max(end for end in _record_ends(whole) if end <= len(pair.held))
    del pair.held[end:]
    pair.epochs.cut(end + 1)


def _record_ends(whole: bytes) -> list[int]:
    ends = [0]
    while ends[-1] < len(whole):
        ends.append(ends[-1] + int.from_bytes(whole[ends[-1] : ends[-1] + 4], "big"))
    return ends


@settings(deadline=None)
@given(steps=_STEPS, batch_bytes=st.integers(100, 2000))
def test_a_slave_holds_the_beginning_of_its_masters_log_and_in_the_end_all_of_it_with_its_epochs(
    store: MessageStore, steps: list[str | tuple[str, int]], batch_bytes: int
) -> None:
    pair, whole = _Pair(store, batch_bytes), log_bytes(store)
    for step in steps:
        match step:
            case (name, size_bytes):
                getattr(pair, name)(size_bytes)
            case "connect":
                _whole_records_only(pair, whole)
                pair.connect()
            case name:
                getattr(pair, name)()
        assert whole.startswith(pair.held)
        assert (
            pair.epochs.epochs
            == tuple(each for each in store.epochs.epochs if each.start <= len(pair.held))[
                : len(pair.epochs.epochs)
            ]
        )
    _whole_records_only(pair, whole)
    pair.connect()
    pair.follow_to_end()
    assert pair.held == whole
    assert pair.epochs.epochs == store.epochs.epochs


@settings(deadline=None, max_examples=40)
@given(own_count=st.integers(0, 30), common_count=st.integers(0, 43), data=st.data())
def test_whatever_another_master_wrote_is_cut_and_the_rest_is_the_masters(
    store: MessageStore, own_count: int, common_count: int, data: st.DataObject
) -> None:
    whole = log_bytes(store)
    ends = _record_ends(whole)
    common_end = ends[min(common_count, len(ends) - 1)]
    pair = _Pair(store, 512)
    pair.held = bytearray(whole[:common_end]) + bytearray(data.draw(st.binary(max_size=1)) * 100 * own_count)
    pair.epochs = EpochHistory(each for each in store.epochs.epochs if each.start < common_end)
    if len(pair.held) > common_end:
        if common_end == 0:
            # Nothing tells that two logs agree that have no epoch in common.
            return
        # Of an epoch that the master does not know, and that is older than its own.
        pair.epochs.begin(6 if pair.epochs.epochs[-1].epoch < 6 else 8, common_end)
    pair.connect()
    if pair.epochs.last is not None and pair.epochs.last.epoch == 8:
        pair.hear(16)
        actions, _ = pair.slave.on_bytes(memoryview(bytes(pair.to_slave)), now_s=100.0)
        assert isinstance(actions[0], CloseLink)
        return
    pair.follow_to_end()
    pair.hear(len(pair.to_master))
    pair.deliver(len(pair.to_slave))
    assert pair.held == whole
    assert pair.epochs.epochs == store.epochs.epochs


@pytest.mark.behaviour("S2-1", "S2-2")
def test_a_conversation_split_at_every_byte_is_the_same(store: MessageStore) -> None:
    pair, whole = _Pair(store, 512), log_bytes(store)
    while len(pair.held) < len(whole):
        for _ in range(len(pair.to_master)):
            pair.hear(1)
        pair.send()
        for _ in range(len(pair.to_slave)):
            pair.deliver(1)
    assert pair.held == whole
    assert pair.epochs.epochs == store.epochs.epochs
