"""Both ends of a classic link, whatever becomes of the connections between them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.ha.actions import AppendLog, CloseLink, SendBytes, StartTransfer, TakeAck
from tanist.ha.classic_master import ClassicMasterLink
from tanist.ha.classic_slave import ClassicSlaveLink
from tanist.ha.crcs import Crcs
from tanist.ha.record_walk import RecordWalk
from tanist.protocol.ha_link import AckKind
from tanist.store import MessageStore
from tests.support.messages import SMALL, make_message, open_store

_FILE_BYTES = SMALL.mapped_file_size_commit_log


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageStore]:
    """Records that are smaller and larger than a frame, in several files."""
    with open_store(tmp_path_factory.mktemp("store")) as store:
        for number in range(40):
            store.append(make_message(number, body_bytes=number * 37 % 1500))
        yield store


@dataclass
class _Pair:
    """Both ends, and the bytes on their way."""

    store: MessageStore
    batch_bytes: int
    held: bytearray = field(default_factory=bytearray)
    """The slave's log."""

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        """A new connection: what was on its way is lost."""
        self.master = ClassicMasterLink(
            log=self.store.log,
            first_for_empty=0,
            batch_bytes=self.batch_bytes,
            now_s=0.0,
            heartbeat_s=5.0,
            silence_s=20.0,
        )
        walk = None
        if self.held:
            walk = RecordWalk(0, file_bytes=_FILE_BYTES)
            walk.feed(bytes(self.held))
        self.slave = ClassicSlaveLink(
            log_end=len(self.held),
            walk=walk,
            file_bytes=_FILE_BYTES,
            ack_kind=AckKind.RECEIVED,
            now_s=0.0,
            heartbeat_s=5.0,
            silence_s=20.0,
        )
        self.to_slave = bytearray()
        (report,) = self.slave.on_connected()
        assert isinstance(report, SendBytes)
        self._hear(report.data)

    def send(self) -> None:
        """The master sends one more frame."""
        master, log = self.master, self.store.log
        if master.sent_to < log.log_end:
            body = bytes(log.read_ahead(master.sent_to, master.max_body_bytes))
            self.to_slave += master.header(master.sent_to, body, log_end=log.log_end, crcs=Crcs())
            self.to_slave += body
            master.on_sent(master.sent_to + len(body), now_s=0.0)

    def beat(self) -> None:
        for action in self.master.on_tick(log_end=self.store.log.log_end, now_s=6.0):
            assert isinstance(action, SendBytes)
            self.to_slave += action.data

    def deliver(self, size_bytes: int) -> None:
        """So many of the bytes on their way arrive, and what the slave reports does too."""
        data, self.to_slave = bytes(self.to_slave[:size_bytes]), self.to_slave[size_bytes:]
        actions, _ = self.slave.on_bytes(memoryview(data), now_s=0.0)
        for action in actions:
            assert not isinstance(action, CloseLink), action
            if isinstance(action, AppendLog):
                assert action.log_offset == len(self.held)
                self.held += action.body
                self.slave.on_appended(len(self.held))
        for action in self.slave.on_held(self.slave.log_end, now_s=0.0):
            assert isinstance(action, SendBytes)
            self._hear(action.data)

    def _hear(self, data: bytes) -> None:
        for action in self.master.on_bytes(data, now_s=0.0):
            assert isinstance(action, StartTransfer | TakeAck), action
        assert self.master.acked_to <= self.master.sent_to <= self.store.log.log_end
        assert self.master.acked_to == len(self.held)


_STEPS = st.lists(
    st.one_of(
        st.sampled_from(["send", "beat", "connect"]),
        st.integers(1, 3000),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(steps=_STEPS, batch_bytes=st.integers(100, 2000))
def test_a_slave_holds_the_beginning_of_its_masters_log_and_in_the_end_all_of_it(
    store: MessageStore, steps: list[str | int], batch_bytes: int
) -> None:
    pair = _Pair(store, batch_bytes)
    whole = b"".join(
        bytes(store.log.read_ahead(start, _FILE_BYTES)) for start in range(0, store.log.log_end, _FILE_BYTES)
    )
    for step in steps:
        if isinstance(step, int):
            pair.deliver(step)
        else:
            getattr(pair, step)()
        assert whole.startswith(pair.held)
    while len(pair.held) < len(whole):
        pair.send()
        pair.deliver(len(pair.to_slave))
    assert pair.held == whole
