import pytest

from tanist.protocol.batch import decode_batch
from tanist.protocol.bodies.writes import QueueMark
from tanist.protocol.properties import decode_properties
from tanist.spark.errors import SparkError
from tanist.spark.sink.lanes import PACKET_BYTES, PACKET_ROWS, Lane, RowsDiffer, Task

TASK = Task("query", 3, 1)


def _lane(mark: QueueMark | None = None, rows: range = range(6)) -> Lane:
    lane = Lane(TASK, "TopicA/a/0", mark)
    for index in rows:
        lane.add(index, body=b"row %d" % index, properties=b"TAGS\x01x\x02", made=b"")
    return lane


def _mark(index: int, *, batch: int = 3, total: int | None = None) -> QueueMark:
    packet = _lane(rows=range(index + 1)).take_packet()
    assert packet is not None
    return QueueMark(queue_id=0, batch=batch, index=index, sum=packet.run.sum if total is None else total)


def test_a_packet_names_its_records_and_what_it_follows() -> None:
    lane = _lane(rows=range(2))
    first = lane.take_packet()
    lane.add(2, body=b"row 2", properties=b"", made=b"")
    second = lane.take_packet()
    assert first is not None
    assert second is not None
    assert (first.run.previous, first.run.last, first.run.sum_before) == (-1, 1, 0)
    assert (second.run.previous, second.run.last, second.run.sum_before) == (1, 2, first.run.sum)
    item = decode_batch(second.body)[0]
    assert decode_properties(item.properties) == {
        "WRITE_ID": "query/3/1/2",
        "WRITE_SUM": f"{second.run.sum:x}",
    }


def test_a_task_that_is_repeated_goes_on_behind_its_mark() -> None:
    lane = _lane(_mark(3))
    packet = lane.finish()
    assert packet is not None
    assert [item.index for item in packet.items] == [4, 5]
    assert packet.run.previous == 3
    assert lane.skipped_count == 4


def test_of_a_batch_before_the_mark_nothing_is_sent() -> None:
    lane = _lane(_mark(0, batch=4))
    assert lane.finish() is None
    assert lane.skipped_count == 6


def test_a_mark_of_an_earlier_batch_skips_nothing() -> None:
    packet = _lane(_mark(3, batch=2)).finish()
    assert packet is not None
    assert len(packet.items) == 6


def test_other_rows_and_fewer_rows_than_before_are_found_out() -> None:
    with pytest.raises(RowsDiffer, match="query query batch 3 partition 1 in queue TopicA/a/0"):
        _lane(_mark(3, total=1))
    with pytest.raises(RowsDiffer, match="up to index 5"):
        _lane(_mark(5), rows=range(5)).finish()
    with pytest.raises(RowsDiffer):
        # The row at the mark goes to another queue now.
        _lane(_mark(3), rows=range(0, 6, 2))


def test_what_is_sent_again_is_what_the_broker_lacks() -> None:
    lane = _lane()
    lane.take_packet()
    (packet,) = lane.resume(_mark(3))
    assert [item.index for item in packet.items] == [4, 5]
    assert (packet.run.previous, packet.run.sum_before) == (3, _mark(3).sum)
    assert lane.resume(_mark(5)) == []
    assert lane.unacked_bytes == 0


def test_a_broker_that_lost_what_it_acknowledged_is_found_out() -> None:
    lane = _lane()
    lane.take_packet()
    lane.on_acked()
    lane.add(6, body=b"row 6", properties=b"", made=b"")
    lane.take_packet()
    with pytest.raises(SparkError, match="acknowledged rows up to index 5 and has them up to 2 now"):
        lane.resume(_mark(2))


def test_a_packet_is_full_at_some_rows_and_some_bytes() -> None:
    lane = Lane(TASK, "q", None)
    assert lane.add(0, body=bytes(1 << 20), properties=b"", made=b"")
    other = Lane(TASK, "q", None)
    full = [bool(other.add(index, body=b"x", properties=b"", made=b"")) for index in range(PACKET_ROWS)]
    assert full.index(True) == PACKET_ROWS - 1


def test_a_large_row_goes_alone_and_what_was_open_before_it() -> None:
    lane = Lane(TASK, "q", None)
    for index in range(400):
        assert not lane.add(index, body=bytes(1000), properties=b"", made=b"")
    small, large = lane.add(400, body=bytes(4_000_000), properties=b"", made=b"")
    assert small.size_bytes <= PACKET_BYTES
    assert (len(small.items), len(large.items)) == (400, 1)
    assert (large.run.previous, large.run.sum_before) == (399, small.run.sum)
    assert list(lane.unacked) == [small, large]
    assert lane.open_bytes == 0


@pytest.mark.parametrize(
    ("body", "properties", "why"), [(b"", b"", "empty body"), (b"x", b"a" * 40_000, "bytes of properties")]
)
def test_what_brokers_do_not_take_is_refused(body: bytes, properties: bytes, why: str) -> None:
    with pytest.raises(SparkError, match=why):
        Lane(TASK, "q", None).add(0, body=body, properties=properties, made=b"")
