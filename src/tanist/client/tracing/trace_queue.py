"""Traces that wait to be sent, bounded, and how many of them go into one message. Pure."""

from collections import deque

import msgspec

from tanist.client.tracing.trace_format import Trace, encode_trace
from tanist.protocol.tags import KEY_SEPARATOR

BATCH_COUNT = 100
MAX_BATCH_BYTES = 128_000
"""What RocketMQ's clients put into one message of traces at most."""
MAX_KEYS_BYTES = 16_384
"""Half of what a message's properties may take."""


class TraceBatch(msgspec.Struct, frozen=True):
    """Several traces as one message. ``keys`` are what it is found by: message ids, and messages' keys."""

    body: bytes
    keys: list[str]
    trace_count: int


class TraceQueue:
    """Traces in the order in which they came. What comes while it is full is dropped and counted."""

    def __init__(self, *, limit: int) -> None:
        self.dropped_count = 0
        self._limit = limit
        self._traces: deque[Trace] = deque()

    def __len__(self) -> int:
        return len(self._traces)

    def put(self, trace: Trace) -> None:
        if len(self._traces) < self._limit:
            self._traces.append(trace)
        else:
            self.dropped_count += 1

    def take(self) -> TraceBatch | None:
        """The traces that go first, as many as one message takes; None if there are none."""
        traces = self._traces
        records: list[bytes] = []
        keys: dict[str, None] = {}
        body_bytes = keys_bytes = 0
        while traces and len(records) < BATCH_COUNT:
            record = encode_trace(traces[0]).encode("utf-8", "replace")
            words = _words(traces[0])
            words_bytes = _size_bytes(words)
            is_full = body_bytes + len(record) > MAX_BATCH_BYTES or keys_bytes + words_bytes > MAX_KEYS_BYTES
            if records and is_full:
                break
            traces.popleft()
            records.append(record)
            keys.update(dict.fromkeys(words))
            body_bytes += len(record)
            keys_bytes += words_bytes
        if not records:
            return None
        return TraceBatch(body=b"".join(records), keys=list(keys), trace_count=len(records))

    def clear(self) -> None:
        """Drop and count what is left."""
        self.dropped_count += len(self._traces)
        self._traces.clear()


def _words(trace: Trace) -> list[str]:
    """What a trace is found by, as far as it can be sent: clients of other kinds make odd ids and keys."""
    text = trace.message_id if trace.keys is None else f"{trace.message_id} {trace.keys}"
    words = [word for word in text.split(KEY_SEPARATOR) if word and word.isprintable()]
    return words if _size_bytes(words) <= MAX_KEYS_BYTES else []


def _size_bytes(words: list[str]) -> int:
    return len(KEY_SEPARATOR.join(words).encode()) + 1
