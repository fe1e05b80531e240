"""Replication streams: however the network cuts them, they say the same; whatever comes, nothing breaks."""

import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.errors import RemoteProtocolError
from tanist.model.epochs import Epoch
from tanist.model.offsets import LogOffset
from tanist.protocol import ha_autoswitch, ha_classic, ha_link
from tanist.protocol.ha_hello import (
    MAX_TAIL_BYTES,
    Accepted,
    AlignFirst,
    Authentication,
    HelloReader,
    MasterHello,
    Refusal,
    Refused,
    SlaveHello,
    SlaveProof,
    Verdict,
    decode_master_hello,
    decode_slave_hello,
    decode_slave_proof,
    decode_verdict,
    encode_master_hello,
    encode_slave_hello,
    encode_slave_proof,
    encode_verdict,
)
from tanist.protocol.ha_stream import BodyPart
from tests.support.hello import say_hello

OFFSETS = st.integers(0, 2**63 - 1).map(LogOffset)
EPOCH_NUMBERS = st.integers(0, 2**31 - 1)
BODIES = st.binary(max_size=200)
CUTS = st.lists(st.integers(0, 400), max_size=8)


class Decoder(Protocol):
    def feed(self, data: bytes | memoryview, /) -> Sequence[Any]: ...


def _heard(decoder: Decoder, stream: bytes, cuts: Sequence[int] = ()) -> list[Any] | None:
    """What a stream says when it is cut at these places, bodies put together; None if it is refused."""
    heard: list[Any] = []
    ends = [*sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    start = 0
    for end in ends:
        try:
            events = decoder.feed(memoryview(stream)[start:end])
        except RemoteProtocolError:
            return None
        for event in events:
            if not isinstance(event, BodyPart):
                heard.append(event)
            elif heard and isinstance(heard[-1], bytes):
                heard[-1] += bytes(event.view)
            else:
                heard.append(bytes(event.view))
        start = end
    return heard


def _classic_frame(log_offset: LogOffset, body: bytes) -> bytes:
    return ha_classic.encode_transfer_header(log_offset, len(body)) + body


def _auto_switch_frame(header: ha_autoswitch.TransferHeader, body: bytes) -> bytes:
    return ha_autoswitch.encode_transfer_header(header._replace(size_bytes=len(body))) + body


def _auto_switch_master(handshake: ha_autoswitch.MasterHandshake, frames: list[bytes]) -> bytes:
    return ha_autoswitch.encode_master_handshake(handshake) + b"".join(frames)


def _auto_switch_slave(handshake: ha_autoswitch.SlaveHandshake, reports: list[int]) -> bytes:
    frames = map(ha_autoswitch.encode_slave_report, reports)
    return ha_autoswitch.encode_slave_handshake(handshake) + b"".join(frames)


def _link_frame(log_offset: int, epoch: int, confirmed_to: int, body: bytes) -> bytes:
    header = ha_link.encode_data_header(
        log_offset, len(body), epoch=epoch, confirmed_to=confirmed_to, body_crc=zlib.crc32(body)
    )
    return header + body


class _LinkDecoder:
    """Keeps what is not whole yet, as the ends of a link do."""

    def __init__(self, allowed: frozenset[ha_link.FrameKind]) -> None:
        self._allowed = allowed
        self._held = b""

    def feed(self, data: bytes | memoryview) -> list[ha_link.Frame]:
        self._held += bytes(data)
        frames, used = ha_link.decode_frames(memoryview(self._held), self._allowed)
        self._held = self._held[used:]
        return frames


def _rising_epochs(steps: list[tuple[int, int]]) -> tuple[Epoch, ...]:
    epochs: list[Epoch] = []
    number = start = 0
    for more, further in steps:
        number, start = number + more, start + further
        epochs.append(Epoch(number, LogOffset(start)))
    return tuple(epochs)


EPOCHS = st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 10**6)), max_size=20).map(_rising_epochs)
MASTER_HANDSHAKES = st.builds(
    ha_autoswitch.MasterHandshake, log_end=OFFSETS, epoch=st.integers(-1, 2**31 - 1), epochs=EPOCHS
)
SLAVE_HANDSHAKES = st.builds(ha_autoswitch.SlaveHandshake, OFFSETS, st.booleans(), st.booleans())
HEARTBEATS = st.builds(ha_link.Heartbeat, OFFSETS, EPOCH_NUMBERS, OFFSETS)
NOTES = st.binary(min_size=1, max_size=200)
ACKS = st.builds(ha_link.Ack, st.sampled_from(ha_link.AckKind), OFFSETS)

CLASSIC_FRAMES = st.builds(_classic_frame, OFFSETS, BODIES)
AUTO_SWITCH_FRAMES = st.builds(
    _auto_switch_frame,
    st.builds(
        ha_autoswitch.TransferHeader, OFFSETS, st.just(0), EPOCH_NUMBERS, OFFSETS, st.integers(-1, 2**63 - 1)
    ),
    BODIES,
)
DATA_FRAMES = st.builds(_link_frame, OFFSETS, EPOCH_NUMBERS, OFFSETS, st.binary(min_size=1, max_size=200))

CLASSIC_STREAMS = st.lists(CLASSIC_FRAMES, max_size=4).map(b"".join)
AUTO_SWITCH_MASTER_STREAMS = st.builds(
    _auto_switch_master, MASTER_HANDSHAKES, st.lists(AUTO_SWITCH_FRAMES, max_size=4)
)
AUTO_SWITCH_SLAVE_STREAMS = st.builds(_auto_switch_slave, SLAVE_HANDSHAKES, st.lists(OFFSETS, max_size=4))
EITHERS_FRAMES = HEARTBEATS.map(ha_link.encode_heartbeat) | NOTES.map(ha_link.encode_note)
LINK_MASTER_STREAMS = st.lists(DATA_FRAMES | EITHERS_FRAMES, max_size=4).map(b"".join)
LINK_SLAVE_STREAMS = st.lists(ACKS.map(ha_link.encode_ack) | EITHERS_FRAMES, max_size=6).map(b"".join)

NewDecoder = Callable[[], Decoder]
SIDES: list[tuple[NewDecoder, st.SearchStrategy[bytes]]] = [
    (ha_classic.TransferDecoder, CLASSIC_STREAMS),
    (ha_autoswitch.MasterFrameDecoder, AUTO_SWITCH_MASTER_STREAMS),
    (ha_autoswitch.SlaveFrameDecoder, AUTO_SWITCH_SLAVE_STREAMS),
    (lambda: _LinkDecoder(ha_link.FROM_MASTER), LINK_MASTER_STREAMS),
    (lambda: _LinkDecoder(ha_link.FROM_SLAVE), LINK_SLAVE_STREAMS),
]
NAMES = ["classic master", "auto-switch master", "auto-switch slave", "link master", "link slave"]


@pytest.mark.parametrize(("new_decoder", "streams"), SIDES, ids=NAMES)
@settings(deadline=None)
@given(data=st.data(), cuts=CUTS)
def test_however_a_stream_is_cut_it_says_the_same(
    new_decoder: NewDecoder, streams: st.SearchStrategy[bytes], data: st.DataObject, cuts: list[int]
) -> None:
    stream = data.draw(streams)
    whole = _heard(new_decoder(), stream)
    assert whole is not None
    assert _heard(new_decoder(), stream, cuts) == whole
    assert _heard(new_decoder(), stream, range(len(stream))) == whole


@pytest.mark.parametrize(("new_decoder", "streams"), SIDES, ids=NAMES)
@settings(deadline=None)
@given(data=st.data(), cuts=CUTS)
def test_whatever_comes_is_understood_or_refused_however_it_is_cut(
    new_decoder: NewDecoder, streams: st.SearchStrategy[bytes], data: st.DataObject, cuts: list[int]
) -> None:
    # Pure noise is refused by its first bytes; noise behind a sound beginning gets further in.
    sound = data.draw(st.just(b"") | streams)
    stream = sound[: data.draw(st.integers(0, len(sound)))] + data.draw(st.binary(max_size=100))
    assert _heard(new_decoder(), stream, cuts) == _heard(new_decoder(), stream)


@settings(deadline=None)
@given(reports=st.lists(OFFSETS, min_size=1, max_size=20), tail=st.binary(max_size=7), cuts=CUTS)
def test_however_reports_are_cut_the_newest_whole_one_counts(
    reports: list[int], tail: bytes, cuts: list[int]
) -> None:
    stream = b"".join(map(ha_classic.encode_report, reports)) + tail
    decoder = ha_classic.ReportDecoder()
    start = 0
    newest = None
    for end in [*sorted(min(cut, len(stream)) for cut in cuts), len(stream)]:
        report = decoder.feed(memoryview(stream)[start:end])
        assert report == (reports[end // 8 - 1] if end // 8 > start // 8 else None)
        newest = newest if report is None else report
        start = end
    assert newest == reports[-1]


@settings(deadline=None)
@given(handshake=MASTER_HANDSHAKES)
def test_a_master_handshake_decodes_to_what_was_encoded(handshake: ha_autoswitch.MasterHandshake) -> None:
    raw = ha_autoswitch.encode_master_handshake(handshake)
    assert ha_autoswitch.MasterFrameDecoder().feed(raw) == [handshake]


@settings(deadline=None)
@given(handshake=SLAVE_HANDSHAKES, log_offset=OFFSETS)
def test_what_a_slave_says_decodes_to_what_was_encoded(
    handshake: ha_autoswitch.SlaveHandshake, log_offset: int
) -> None:
    raw = ha_autoswitch.encode_slave_handshake(handshake) + ha_autoswitch.encode_slave_report(log_offset)
    assert ha_autoswitch.SlaveFrameDecoder().feed(raw) == [handshake, ha_autoswitch.SlaveReport(log_offset)]


@settings(deadline=None)
@given(frames=st.lists(ACKS | HEARTBEATS, max_size=6))
def test_acks_and_heartbeats_decode_to_what_was_encoded(
    frames: list[ha_link.Ack | ha_link.Heartbeat],
) -> None:
    raw = b"".join(
        ha_link.encode_ack(frame) if isinstance(frame, ha_link.Ack) else ha_link.encode_heartbeat(frame)
        for frame in frames
    )
    assert _LinkDecoder(ha_link.FROM_SLAVE).feed(raw) == frames


# ----- the hello

NONCES = st.binary(min_size=16, max_size=16)
INCARNATIONS = NONCES.filter(any)
RANGES = st.tuples(OFFSETS, OFFSETS).map(sorted)
GROUPS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(
    lambda text: text.isprintable() and len(text.encode()) <= 127
)
SLAVE_HELLOS = st.builds(SlaveHello, GROUPS, OFFSETS, NONCES)
VERDICTS = (
    st.builds(Accepted, OFFSETS)
    | st.builds(Refused, st.sampled_from(Refusal), st.text(st.characters(codec="utf-8"), max_size=32))
    | st.builds(AlignFirst, EPOCHS)
)
AUTHENTICATIONS = st.sampled_from(Authentication)


@st.composite
def master_hellos(draw: st.DrawFn) -> MasterHello:
    log_start, log_end = draw(RANGES)
    return MasterHello(draw(NONCES), draw(INCARNATIONS), log_start, log_end, draw(EPOCH_NUMBERS))


@st.composite
def slave_proofs(draw: st.DrawFn) -> SlaveProof:
    log_start, log_end = draw(RANGES)
    log_bytes = log_end - log_start
    tail_bytes = draw(st.integers(min(1, log_bytes), min(log_bytes, MAX_TAIL_BYTES)))
    return SlaveProof(
        draw(NONCES),
        log_start,
        log_end,
        draw(EPOCH_NUMBERS),
        draw(st.integers(0, 2**32 - 1)),
        tail_bytes,
        draw(st.sampled_from(ha_link.AckKind)),
        draw(st.integers(1, 2**63 - 1)),
        draw(st.booleans()),
    )


@settings(deadline=None)
@given(
    hello=SLAVE_HELLOS,
    answer=master_hellos(),
    proof=slave_proofs(),
    verdict=VERDICTS,
    authentication=AUTHENTICATIONS,
)
def test_hello_messages_decode_to_what_was_encoded(
    hello: SlaveHello,
    answer: MasterHello,
    proof: SlaveProof,
    verdict: Verdict,
    authentication: Authentication,
) -> None:
    tail = bytes(32) if authentication is Authentication.SECRET else b""
    assert decode_slave_hello(encode_slave_hello(hello, authentication), authentication) == hello
    assert decode_master_hello(encode_master_hello(answer, authentication) + tail, authentication) == answer
    assert decode_slave_proof(encode_slave_proof(proof, authentication) + tail, authentication) == proof
    assert decode_verdict(encode_verdict(verdict, authentication) + tail, authentication) == verdict


@settings(deadline=None)
@given(hello=SLAVE_HELLOS, cuts=CUTS, rest=st.binary(max_size=20))
def test_however_a_hello_is_cut_it_is_read_whole_and_what_follows_is_left(
    hello: SlaveHello, cuts: list[int], rest: bytes
) -> None:
    raw = encode_slave_hello(hello, Authentication.SECRET)
    reader = HelloReader()
    start = 0
    for end in sorted(min(cut, len(raw) - 1) for cut in cuts):
        assert reader.feed(raw[start:end]) == (None, b"")
        start = end
    message, left = reader.feed(raw[start:] + rest)
    assert message == raw
    assert bytes(left) == rest


@settings(deadline=None)
@given(
    raw=st.binary(max_size=300), hello=SLAVE_HELLOS, kept=st.integers(0, 300), authentication=AUTHENTICATIONS
)
def test_any_bytes_are_a_hello_or_refused(
    raw: bytes, hello: SlaveHello, kept: int, authentication: Authentication
) -> None:
    for noise in (raw, encode_slave_hello(hello, authentication)[:kept] + raw):
        for decode in (decode_slave_hello, decode_master_hello, decode_slave_proof, decode_verdict):
            with suppress(RemoteProtocolError):
                decode(noise, authentication)
        with suppress(RemoteProtocolError):
            HelloReader().feed(noise)


@settings(deadline=None)
@given(
    hello=SLAVE_HELLOS,
    answer=master_hellos(),
    verdict=VERDICTS,
    secret=st.binary(min_size=1, max_size=80),
    step=st.integers(0, 3),
    data=st.data(),
)
def test_a_flipped_bit_of_any_hello_message_is_refused(
    *,
    hello: SlaveHello,
    answer: MasterHello,
    verdict: Accepted | Refused,
    secret: bytes,
    step: int,
    data: st.DataObject,
) -> None:
    def flip(at: int, raw: bytes) -> bytes:
        if at != step:
            return raw
        bit = data.draw(st.integers(0, len(raw) * 8 - 1))
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        return bytes(flipped)

    def exchange(between: Callable[[int, bytes], bytes]) -> list[bytes]:
        return say_hello(
            between,
            slave_secret=secret,
            master_secret=secret,
            slave_hello=hello,
            master_hello=answer,
            verdict=verdict,
        )

    assert len(exchange(lambda _, raw: raw)) == 4
    with pytest.raises(RemoteProtocolError):
        exchange(flip)
