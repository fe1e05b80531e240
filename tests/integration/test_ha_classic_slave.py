"""What a slave does that follows a master which speaks RocketMQ's classic replication."""

import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tanist.errors import NotWritable
from tanist.store import MessageStore, StoreSettings
from tanist.testing import EmbeddedBroker
from tests.support.ha_pair import FILE_BYTES
from tests.support.messages import make_message
from tests.support.played_classic import PlayedMaster
from tests.support.replicated_log import LogOnDisk

_FRAME_BYTES = 32 << 10


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A master's log of more than one file."""
    settings = StoreSettings(mapped_file_size_commit_log=FILE_BYTES)
    root = tmp_path_factory.mktemp("log")
    with MessageStore.open(root, settings) as store:
        for number in range(700):
            store.append(make_message(number, body_bytes=2000))
    return LogOnDisk.read(root).data


@pytest.fixture
def master() -> Iterator[PlayedMaster]:
    with PlayedMaster() as master:
        yield master


@contextmanager
def _following(master: PlayedMaster, store: Path, **settings: str) -> Generator[EmbeddedBroker]:
    given = {
        "brokerRole": "SLAVE",
        "brokerId": "1",
        "haCompatibility": "classic",
        "haMasterAddress": master.address,
        "mappedFileSizeCommitLog": str(FILE_BYTES),
        **settings,
    }
    with EmbeddedBroker(store=store, settings=given) as slave:
        yield slave


def _frames(log: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """The log as RocketMQ cuts it: anywhere, but not across files."""
    while start < len(log):
        file_end = start - start % FILE_BYTES + FILE_BYTES
        end = min(start + _FRAME_BYTES, file_end, len(log))
        yield start, log[start:end]
        start = end


@pytest.mark.behaviour("S1-81", "S1-87", "S1-91", "S1-93", "S1-98", "S1-103")
def test_a_slave_takes_over_the_log_and_reports_what_it_holds(
    master: PlayedMaster, log: bytes, tmp_path: Path
) -> None:
    with _following(master, tmp_path), master.called() as slave:
        assert slave.read_report() == 0
        for log_offset, body in _frames(log):
            slave.send(log_offset, body)
        slave.read_report_of(len(log))
        assert LogOnDisk.read(tmp_path).data == log


@pytest.mark.behaviour("S1-86", "S1-94")
def test_a_slave_whose_master_goes_calls_again_and_goes_on_where_it_was(
    master: PlayedMaster, log: bytes, tmp_path: Path
) -> None:
    frames = list(_frames(log))
    half = len(frames) // 2
    with _following(master, tmp_path):
        with master.called() as slave:
            slave.read_report_of(0)
            for log_offset, body in frames[:half]:
                slave.send(log_offset, body)
            # Half of a frame is not taken.
            slave.say(
                (frames[half][0]).to_bytes(8, "big") + len(frames[half][1]).to_bytes(4, "big") + b"half"
            )
            slave.read_report_of(frames[half][0])
        with master.called() as slave:
            assert slave.read_report() == frames[half][0]
            for log_offset, body in frames[half:]:
                slave.send(log_offset, body)
            slave.read_report_of(len(log))
        assert LogOnDisk.read(tmp_path).data == log


@pytest.mark.behaviour("S1-84", "S1-90")
def test_a_master_that_resets_the_connection_again_and_again_does_not_end_the_slave(
    master: PlayedMaster, log: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with _following(master, tmp_path):
        for _ in range(3):
            with master.called() as slave:
                slave.read_report()
                slave.reset()
        with master.called() as slave:
            assert slave.read_report() == 0
            slave.send(*next(_frames(log)))
            slave.read_report_of(_FRAME_BYTES)
    assert "link to the master ended" in caplog.text


@pytest.mark.behaviour("S1-95", "S1-97", "S1-124")
def test_a_frame_that_does_not_fit_is_not_applied_and_ends_the_connection(
    master: PlayedMaster, log: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with _following(master, tmp_path):
        with master.called() as slave:
            slave.read_report()
            slave.send(0)
            slave.send(0, log[:_FRAME_BYTES])
            slave.read_report_of(_FRAME_BYTES)
            slave.send(_FRAME_BYTES)
            slave.send(FILE_BYTES, log[FILE_BYTES : FILE_BYTES + 100])
            assert slave.has_hung_up()
        with master.called() as slave:
            assert slave.read_report() == _FRAME_BYTES
    expected = f"not equal the max phy offset in slave, SLAVE: {_FRAME_BYTES} MASTER: {FILE_BYTES}"
    assert expected in caplog.text
    assert LogOnDisk.read(tmp_path).start == 0


@pytest.mark.behaviour("S1-101", "S1-102")
def test_what_the_log_does_not_take_is_never_acked_and_asked_for_again(
    master: PlayedMaster,
    log: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    append_raw = MessageStore.append_raw
    failures = 1

    def refuse_once(store: MessageStore, log_offset: int, data: bytes | memoryview) -> int:
        nonlocal failures
        if log_offset and failures:
            failures -= 1
            raise NotWritable("there is no room")
        return append_raw(store, log_offset, data)

    monkeypatch.setattr(MessageStore, "append_raw", refuse_once)
    frames = list(_frames(log))[:3]
    with _following(master, tmp_path):
        with master.called() as slave:
            slave.read_report()
            for log_offset, body in frames:
                slave.send(log_offset, body)
            assert slave.has_hung_up()
        with master.called() as slave:
            assert slave.read_report() == _FRAME_BYTES
            for log_offset, body in frames[1:]:
                slave.send(log_offset, body)
            slave.read_report_of(3 * _FRAME_BYTES)
    assert f"{_FRAME_BYTES} bytes at {_FRAME_BYTES} are not appended: there is no room" in caplog.text


@pytest.mark.behaviour("S1-82", "S1-85", "S1-89", "S1-94")
def test_a_slave_repeats_its_report_and_leaves_a_master_that_is_silent(
    master: PlayedMaster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with _following(master, tmp_path, haSendHeartbeatInterval="100", haHousekeepingInterval="1000"):
        with master.called() as slave:
            assert [slave.read_report() for _ in range(4)] == [0] * 4
            assert slave.has_hung_up()
        with master.called() as slave:
            assert slave.read_report() == 0
    assert "the master did not respond for" in caplog.text


@pytest.mark.behaviour("S1-80")
def test_a_slave_that_knows_no_master_waits_for_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"brokerRole": "SLAVE", "brokerId": "1", "haCompatibility": "classic"}
    with caplog.at_level(logging.INFO), EmbeddedBroker(store=tmp_path, settings=settings):
        pass
    assert "link to the master ended" not in caplog.text
