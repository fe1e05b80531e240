import msgspec
import pytest

from tanist.errors import RemoteProtocolError
from tanist.model.data_version import DataVersion
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.offsets import QueueOffset
from tanist.model.topics import TopicConfig
from tanist.protocol.ha_stream import MAX_BODY_BYTES
from tanist.protocol.ha_tables import (
    MAX_ENTRY_BYTES,
    PIECE_BYTES,
    DelayEntry,
    DeletionEntry,
    Entry,
    GroupEntry,
    OffsetEntry,
    TableKind,
    TablePiece,
    TopicEntry,
    batches,
    decode_entries,
    decode_piece,
    encode_entry,
    encode_piece,
)

ENTRIES: list[tuple[TableKind, Entry]] = [
    (TableKind.TOPICS, TopicEntry(TopicConfig(topic_name="T", perm=2, attributes={"+a": "b"}))),
    (TableKind.TOPICS, TopicEntry(TopicConfig(topic_name="T"), {"scope": "s", "epoch": 3})),
    (TableKind.GROUPS, GroupEntry(SubscriptionGroupConfig(group_name="G"), {"T": 1})),
    (TableKind.OFFSETS, OffsetEntry("T@G", {0: QueueOffset(-1), 7: QueueOffset(2**62)})),
    (TableKind.DELAYS, DelayEntry(18, QueueOffset(5))),
    (TableKind.DELETIONS, DeletionEntry("T", 2**40)),
]


def _piece(kind: TableKind, *entries: Entry | str) -> TablePiece:
    return TablePiece(
        kind=kind,
        is_whole=False,
        is_first=True,
        is_last=False,
        log_end=2**50,
        version=DataVersion(state_version=1, counter=2, timestamp_ms=3),
        entries=[encode_entry(entry) for entry in entries],
    )


@pytest.mark.parametrize(("kind", "entry"), ENTRIES)
def test_a_piece_comes_out_as_it_went_in(kind: TableKind, entry: Entry) -> None:
    piece = _piece(kind, entry, "gone")
    read = decode_piece(encode_piece(piece))
    assert decode_entries(read) == [entry, "gone"]
    assert msgspec.structs.replace(read, entries=[]) == msgspec.structs.replace(piece, entries=[])


@pytest.mark.parametrize(("kind", "entry"), ENTRIES)
def test_an_entry_of_another_table_is_an_error_of_the_peer(kind: TableKind, entry: Entry) -> None:
    for other in TableKind:
        if other is not kind:
            piece = decode_piece(encode_piece(_piece(other, entry)))
            with pytest.raises(RemoteProtocolError):
                decode_entries(piece)


@pytest.mark.parametrize("count", [0, 1, 5, 100])
def test_batches_have_all_entries_in_order_and_one_is_the_last(count: int) -> None:
    entries = [encode_entry(f"name-{number}") for number in range(count)]
    found = list(batches(entries, batch_bytes=40))
    assert [entry for batch, _ in found for entry in batch] == entries
    assert [is_last for _, is_last in found] == [False] * (len(found) - 1) + [True]
    assert all(sum(map(len, batch)) < 60 for batch, _ in found)


def test_the_largest_piece_fits_a_frame_of_the_link() -> None:
    assert PIECE_BYTES + MAX_ENTRY_BYTES < MAX_BODY_BYTES - 1024
