"""What a slave makes of frames, cut anywhere and wrong ones among them, is the same with a track."""

import asyncio
import itertools
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.model.offsets import LogOffset
from tanist.protocol.ha_link import Heartbeat, encode_data_header, encode_heartbeat, encode_table_change
from tests.support.messages import append_all, make_message, open_store
from tests.support.track_scene import FILE_BYTES, FollowingSlave

pytestmark = pytest.mark.partner("native")
pytest.importorskip("tanist.ha._track")

_EPOCH = 3


def _make_log() -> tuple[bytes, list[int]]:
    """A log of some files, and where its records and blanks begin."""
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder)) as store:
        sizes = [0, 30, 200, 0, 700, 1, 1500, 90]
        places = append_all(
            store, (make_message(n, body_bytes=sizes[n % len(sizes)], keys="k") for n in range(40))
        )
        log, at, found = store.log, 0, b""
        while at < log.log_end:
            found += bytes(log.read_ahead(at, log.log_end - at))
            at = len(found)
        ends = {place.end for place in places} | {place.log_offset for place in places}
        return found, sorted(ends | {len(found)})


_LOG, _ENDS = _make_log()
_lengths = st.lists(st.one_of(st.integers(1, 12).map(lambda count: -count), st.integers(1, 400)), max_size=14)
"""Of the frames: below nothing so many records, else bytes."""
_faults = st.one_of(
    st.none(),
    st.tuples(
        st.sampled_from(["bit", "offset", "epoch", "garbage"]), st.integers(0, 13), st.integers(0, 3000)
    ),
)


def _frames(lengths: list[int], fault: tuple[str, int, int] | None, epoch: int) -> list[bytes]:
    """The beginning of the log in frames of these lengths, one of them at fault, and others between."""
    frames: list[bytes] = []
    at = 0
    for number, length in enumerate(lengths):
        behind = [end for end in _ENDS if end > at]
        end = behind[min(-length, len(behind)) - 1] if length < 0 and behind else min(at + length, len(_LOG))
        # No frame goes beyond the end of a file.
        end = min(end, at - at % FILE_BYTES + FILE_BYTES)
        if end <= at:
            break
        body = _LOG[at:end]
        kind, place, value = fault if fault is not None and fault[1] == number else ("", 0, 0)
        wrong = at + value + 1 if kind == "offset" else at
        header = encode_data_header(
            wrong,
            len(body),
            epoch=epoch + (kind == "epoch"),
            confirmed_to=max(0, at - 100),
            body_crc=zlib.crc32(body),
        )
        frame = bytearray(header + body)
        if kind == "bit":
            frame[value % len(frame)] ^= 1 << (place % 8)
        frames.append(bytes(frame))
        if kind == "garbage":
            frames.append(bytes([value % 256]) * 5)
        if number % 5 == 3:
            frames.append(encode_heartbeat(Heartbeat(LogOffset(end), epoch, LogOffset(at))))
        if number % 7 == 4:
            frames.append(encode_table_change(b"a change"))
        at = end
    return frames


@given(_lengths, _faults, st.lists(st.integers(1, 2500), min_size=1, max_size=6), st.booleans())
@settings(deadline=None)
def test_a_slave_ends_alike_with_a_track_and_without_however_frames_are_cut(
    lengths: list[int], fault: tuple[str, int, int] | None, cuts: list[int], has_epochs: bool
) -> None:
    epoch = _EPOCH if has_epochs else 0
    stream = b"".join(_frames(lengths, fault, epoch))
    outcomes: list[dict[str, object]] = []

    async def follow(folder: Path, *, has_track: bool) -> None:
        slave = FollowingSlave(folder, has_track=has_track, epoch=epoch)
        at = 0
        for size in itertools.cycle(cuts):
            if at >= len(stream):
                break
            slave.hear(stream[at : at + size])
            at += size
        outcomes.append(slave.outcome())
        assert has_track or not slave.taken_bytes
        slave.end()

    for has_track in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(follow(Path(folder), has_track=has_track))
    assert outcomes[0] == outcomes[1]
    assert _LOG.startswith(outcomes[0]["log"] if isinstance(outcomes[0]["log"], bytes) else b"?")


def test_whole_records_are_all_taken_by_the_track() -> None:
    async def follow(folder: Path) -> tuple[int, int]:
        slave = FollowingSlave(folder, has_track=True, epoch=_EPOCH)
        for frame in _frames([-1] * 14, None, _EPOCH):
            slave.hear(frame)
        slave.end()
        return sum(slave.taken_bytes), sum(slave.appended_bytes)

    with tempfile.TemporaryDirectory() as folder:
        taken, appended = asyncio.run(follow(Path(folder)))
    # The first frame begins an epoch; and of each file the end, which is no record, goes the other way.
    assert taken > appended > 0
