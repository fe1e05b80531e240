"""Changes of tables on the link: nothing but an error of the peer, and nothing applied before its log."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from tanist.broker.held_changes import Change, HeldChanges
from tanist.errors import RemoteProtocolError
from tanist.model.data_version import DataVersion
from tanist.protocol.ha_tables import (
    TableKind,
    TablePiece,
    decode_entries,
    decode_piece,
    encode_entry,
    encode_piece,
)

_GOOD = encode_piece(
    TablePiece(
        kind=TableKind.OFFSETS,
        is_whole=True,
        is_first=True,
        is_last=True,
        log_end=5,
        version=DataVersion(counter=3),
        entries=[encode_entry("gone")],
    )
)


@given(st.binary(max_size=200))
def test_random_bytes_are_an_error_of_the_peer_and_no_other(data: bytes) -> None:
    with suppress(RemoteProtocolError):
        decode_entries(decode_piece(data))


@given(st.integers(min_value=0, max_value=len(_GOOD) - 1), st.integers(min_value=0, max_value=255))
def test_one_wrong_byte_is_an_error_of_the_peer_or_another_piece(position: int, byte: int) -> None:
    data = bytearray(_GOOD)
    data[position] = byte
    with suppress(RemoteProtocolError):
        decode_entries(decode_piece(bytes(data)))


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 5), st.none()),
        st.tuples(st.just("change"), st.sampled_from("abc"), st.none() | st.integers(0, 9)),
        st.tuples(st.just("whole"), st.none(), st.none()),
        st.tuples(st.just("receive"), st.integers(1, 10), st.none()),
    ),
    max_size=40,
)


@given(_STEPS)
def test_a_slave_has_a_state_that_its_master_had_no_later_than_its_log(
    steps: list[tuple[str, int | str | None, int | None]],
) -> None:
    master: dict[str, int] = {}
    slave: dict[str, int] = {}
    history: list[tuple[int, dict[str, int]]] = [(0, {})]
    held = HeldChanges[str, int]()
    master_end = slave_end = 0

    def receive(log_end: int) -> None:
        nonlocal slave
        while (change := held.take(log_end)) is not None:
            assert change.log_end <= log_end
            entries = {**({} if change.is_whole else slave), **change.entries}
            slave = {name: value for name, value in entries.items() if value is not None}

    for kind, what, value in steps:
        if kind == "write":
            assert isinstance(what, int)
            master_end += what
        elif kind == "receive":
            assert isinstance(what, int)
            slave_end = min(slave_end + what, master_end)
        else:
            if isinstance(what, str):
                master = {name: old for name, old in master.items() if name != what}
                master |= {} if value is None else {what: value}
            history.append((master_end, master))
            told: dict[str, int | None] = {**master} if what is None else {str(what): value}
            held.add(Change(is_whole=what is None, log_end=master_end, version=DataVersion(), entries=told))
        receive(slave_end)
        assert slave in [state for log_end, state in history if log_end <= slave_end]
    receive(master_end)
    assert slave == master
