from tanist.client.tracing.trace_format import BeforeTrace, decode_traces
from tanist.client.tracing.trace_queue import BATCH_COUNT, MAX_BATCH_BYTES, MAX_KEYS_BYTES, TraceQueue
from tests.support import golden

CASES = golden.load("traces")


def trace(number: int, *, message_id: str | None = None, keys: str | None = None) -> BeforeTrace:
    return BeforeTrace(
        timestamp_ms=number,
        region="DefaultRegion",
        group="billing",
        request_id=f"R{number}",
        message_id=f"M{number}" if message_id is None else message_id,
        retry_count=0,
        keys=keys,
    )


def queue_of(*traces: BeforeTrace) -> TraceQueue:
    queue = TraceQueue(limit=1000)
    for one in traces:
        queue.put(one)
    return queue


def keys_of(queue: TraceQueue) -> list[str]:
    batch = queue.take()
    assert batch is not None
    return batch.keys


def test_a_batch_has_the_traces_in_their_order_and_is_found_by_ids_and_keys() -> None:
    traces = [trace(1, keys="o-17 o-18"), trace(2), trace(3, message_id="M1", keys="o-18 o-19")]
    batch = queue_of(*traces).take()
    assert batch is not None
    assert decode_traces(batch.body.decode()) == traces
    assert batch.trace_count == 3
    assert batch.keys == ["M1", "o-17", "o-18", "M2", "o-19"]


def test_a_trace_is_found_by_what_rocketmq_would_have_it_found_by() -> None:
    for case in CASES.values():
        (read,) = decode_traces(bytes.fromhex(case["text"]).decode())
        queue = TraceQueue(limit=1)
        queue.put(read)
        assert sorted(keys_of(queue)) == case["keys"]


def test_there_is_no_batch_without_traces() -> None:
    assert queue_of().take() is None


def test_a_batch_has_so_many_traces_at_most() -> None:
    queue = queue_of(*(trace(number) for number in range(BATCH_COUNT + 1)))
    counts = [batch.trace_count for batch in iter(queue.take, None)]
    assert counts == [BATCH_COUNT, 1]


def test_a_batch_has_so_many_bytes_at_most() -> None:
    queue = queue_of(*(trace(number, keys="\x7f" * (MAX_BATCH_BYTES // 4)) for number in range(8)))
    batches = list(iter(queue.take, None))
    assert sum(batch.trace_count for batch in batches) == 8
    assert all(len(batch.body) <= MAX_BATCH_BYTES for batch in batches)


def test_a_batch_has_so_many_keys_at_most() -> None:
    queue = queue_of(*(trace(number, keys=f"{number}" * (MAX_KEYS_BYTES // 4)) for number in range(9)))
    batches = list(iter(queue.take, None))
    assert sum(batch.trace_count for batch in batches) == 9
    assert all(len(" ".join(batch.keys)) <= MAX_KEYS_BYTES for batch in batches)


def test_a_trace_with_more_keys_than_can_be_sent_is_sent_without_any() -> None:
    queue = queue_of(trace(1, keys="k" * MAX_KEYS_BYTES), trace(2))
    assert keys_of(queue) == ["M2"]
    assert len(queue) == 0


def test_ids_and_keys_that_can_not_be_sent_are_no_keys() -> None:
    assert keys_of(queue_of(trace(1, message_id="an id", keys="  good \ud800 \t"))) == ["an", "id", "good"]


def test_what_comes_while_the_queue_is_full_is_dropped_and_counted() -> None:
    queue = TraceQueue(limit=2)
    for number in range(5):
        queue.put(trace(number))
    assert len(queue) == 2
    assert queue.dropped_count == 3
    assert keys_of(queue) == ["M0", "M1"]


def test_what_is_left_at_the_end_is_counted() -> None:
    queue = queue_of(trace(1), trace(2))
    queue.clear()
    assert (len(queue), queue.dropped_count) == (0, 2)
