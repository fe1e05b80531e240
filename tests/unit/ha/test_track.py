"""The track of a slave, on a store and a socket."""

import asyncio
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tanist.ha.actions import CloseKind
from tanist.ha.track import make_track
from tanist.model.message import Appended
from tanist.protocol.ha_link import Ack, AckKind, encode_ack, encode_data_header
from tanist.store import MessageStore
from tanist.store.commitlog import Window
from tanist.store.segment import WRITE_BYTES
from tanist.store.settings import StoreSettings
from tests.support.messages import append_all, make_message, open_store
from tests.support.track_scene import FollowingSlave

pytestmark = pytest.mark.partner("native")
pytest.importorskip("tanist.ha._track")

_RECORDS = 4
_LARGE = StoreSettings(mapped_file_size_commit_log=1 << 20)


def _frames(folder: Path) -> list[bytes]:
    """A frame a record, for a log that begins with them."""
    with open_store(folder / "master") as store:
        places = append_all(store, (make_message(number, body_bytes=100) for number in range(_RECORDS)))
        return [_frame(store, place) for place in places]


def _frame(store: MessageStore, place: Appended) -> bytes:
    body = bytes(store.log.read_ahead(place.log_offset, place.size_bytes))
    header = encode_data_header(
        place.log_offset, len(body), epoch=0, confirmed_to=0, body_crc=zlib.crc32(body)
    )
    return header + body


Play = Callable[[FollowingSlave, list[bytes]], None]


def _with_slave(folder: Path, play: Play, ack_kind: AckKind = AckKind.RECEIVED) -> None:
    async def run() -> None:
        slave = FollowingSlave(folder / "slave", has_track=True, has_socket=True, ack_kind=ack_kind)
        frames = _frames(folder)
        # The first makes the file of the log, which is not for the track.
        slave.hear(frames[0])
        slave.said_past()
        play(slave, frames[1:])
        slave.end()

    asyncio.run(run())


def _ack(slave: FollowingSlave) -> bytes:
    return encode_ack(Ack(AckKind.RECEIVED, slave.store.log.log_end))


def test_what_comes_in_one_read_is_acked_once_and_past_the_transport(tmp_path: Path) -> None:
    def play(slave: FollowingSlave, frames: list[bytes]) -> None:
        slave.hear(b"".join(frames[:2]))
        assert len(slave.taken_bytes) == 1
        assert slave.said_past() == _ack(slave)
        assert slave.link.acked_to == slave.link.log_end == slave.store.log.log_end == slave.store.log.raw_to

    _with_slave(tmp_path, play)


def test_an_ack_waits_behind_what_the_transport_has_to_send(tmp_path: Path) -> None:
    def play(slave: FollowingSlave, frames: list[bytes]) -> None:
        slave.transport.waiting_bytes = 10
        slave.hear(frames[0])
        assert len(slave.taken_bytes) == 1
        assert slave.said_past() == b""
        assert slave.transport.written == _ack(slave)

    _with_slave(tmp_path, play)


def test_where_acks_promise_the_disk_the_track_sends_none(tmp_path: Path) -> None:
    def play(slave: FollowingSlave, frames: list[bytes]) -> None:
        slave.hear(frames[0])
        assert len(slave.taken_bytes) == 1
        assert slave.said_past() == b"" == slave.transport.written
        assert slave.link.acked_to < slave.link.log_end

    _with_slave(tmp_path, play, AckKind.FLUSHED)


def test_a_log_that_takes_nothing_is_not_written_to_and_says_why(tmp_path: Path) -> None:
    def play(slave: FollowingSlave, frames: list[bytes]) -> None:
        log_end = slave.store.log.log_end
        slave.store.log.refusal = "the disk is full"
        slave.hear(frames[0])
        closing = slave.connection.closed.result()
        assert (closing.kind, slave.store.log.log_end) == (CloseKind.STORE, log_end)
        assert "the disk is full" in closing.reason
        assert slave.said_past() == b""

    _with_slave(tmp_path, play)


def test_a_damaged_record_is_refused_with_a_reason_and_what_is_before_it_is_kept(tmp_path: Path) -> None:
    def play(slave: FollowingSlave, frames: list[bytes]) -> None:
        whole = bytearray(frames[1])
        head_bytes = len(encode_data_header(0, 1, epoch=0, confirmed_to=0, body_crc=0))
        body = whole[head_bytes:]
        # In the body of the message: the frame is sound, as its master has summed the damage.
        body[body.index(b"message") + 1] ^= 1
        offset = int.from_bytes(whole[5:13], "big")
        header = encode_data_header(offset, len(body), epoch=0, confirmed_to=0, body_crc=zlib.crc32(body))
        slave.hear(frames[0] + header + bytes(body))
        closing = slave.connection.closed.result()
        assert closing.kind is CloseKind.BAD_FRAME
        assert "damaged in the master's log" in closing.reason
        assert slave.store.log.log_end == offset

    _with_slave(tmp_path, play)


def test_a_link_that_is_over_has_let_go_of_the_log(tmp_path: Path) -> None:
    def play(slave: FollowingSlave, frames: list[bytes]) -> None:
        slave.hear(frames[0])
        slave.connection.close(CloseKind.STOPPED, "the slave stops")
        log_end = slave.store.log.log_end
        slave.hear(frames[1])
        assert slave.store.log.log_end == log_end
        mapped = slave.store.log.segments[-1].mapped
        slave.store.close()
        # Not while somebody has a view of it.
        assert mapped.closed

    _with_slave(tmp_path, play)


def test_a_frame_that_is_written_as_a_whole_asks_for_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [100, WRITE_BYTES, 100]
    with open_store(tmp_path / "master", _LARGE) as master, open_store(tmp_path / "slave", _LARGE) as slave:
        places = append_all(master, (make_message(body_bytes=size) for size in sizes))
        slave.append_raw(0, bytes(master.log.read_ahead(0, places[0].end)))
        asked, window = list[int](), slave.log.window

        def ask() -> Window | None:
            asked.append(slave.log.log_end)
            return window()

        monkeypatch.setattr(slave.log, "window", ask)
        track = make_track(slave.log, lambda _: None)
        assert track is not None
        for place, is_for_c in zip(places[1:], (False, True), strict=True):
            frame = memoryview(_frame(master, place))
            taken = track.take(frame, 0, len(frame), epoch=0, file_number=-1, ack_kind=AckKind.RECEIVED)
            assert (taken is not None) is is_for_c
            if not is_for_c:
                slave.append_raw(place.log_offset, master.log.read(place.log_offset, place.size_bytes))
        assert asked == [places[2].log_offset]
        assert slave.log.log_end == master.log.log_end
        track.close()
