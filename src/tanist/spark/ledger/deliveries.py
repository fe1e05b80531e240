"""What consumers told of messages that they consumed: from traces, or from files of one's own."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tanist.client.tracing.trace_format import AfterTrace, decode_traces
from tanist.errors import RemoteProtocolError
from tanist.spark.errors import UnknownName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "group string, msgId string, deliveredAt timestamp"
_MS_TO_US = 1000


def from_traces(traces: "DataFrame") -> "DataFrame":
    """The acknowledged deliveries in the messages of a trace topic, such as RMQ_SYS_TRACE_TOPIC."""
    # PySpark tells no types of what goes through it.
    bodies: Any = traces.select("body")
    return bodies.mapInArrow(_read, SCHEMA)


def given(frame: "DataFrame") -> "DataFrame":
    """Deliveries that somebody wrote down: a group, a message's id and, if known, when."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - it may not be installed.

    for name in ("group", "msgId"):
        if name not in frame.columns:
            raise UnknownName("column", name, frame.columns)
    at = f.col("deliveredAt") if "deliveredAt" in frame.columns else f.lit(None)
    return frame.select("group", "msgId", at.cast("timestamp").alias("deliveredAt"))


def acknowledged(texts: Iterable[bytes]) -> Iterator[tuple[str, str, int]]:
    """Group, message id and time in ms of what the traces say was consumed well. Pure."""
    for text in texts:
        try:
            traces = decode_traces(text.decode("utf-8", "replace"))
        except RemoteProtocolError:
            # Anybody may send to that topic.
            continue
        for trace in traces:
            if isinstance(trace, AfterTrace) and trace.is_ok:
                yield trace.group, trace.message_id, trace.timestamp_ms


def _read(batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa  # noqa: PLC0415 - it tells no types, and only workers need it.

    arrow: Any = pa
    for batch in batches:
        found = [*acknowledged(batch.column("body").to_pylist())]
        yield arrow.RecordBatch.from_arrays(
            [
                arrow.array([one[0] for one in found], arrow.string()),
                arrow.array([one[1] for one in found], arrow.string()),
                arrow.array([one[2] * _MS_TO_US for one in found], arrow.timestamp("us", tz="UTC")),
            ],
            names=["group", "msgId", "deliveredAt"],
        )
