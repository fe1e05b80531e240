"""Has the marks of writes agree with the log, from which they come and in which they are written down.

The table is a message of a topic of its own, written when a plan comes and whenever the log has grown by
``TABLE_EVERY_BYTES`` since the last one. What came behind the last table is in the properties of the records
themselves. So whoever has the log has the table: a broker that starts again, that was killed, or a slave that
has become master reads the last table and walks what lies behind it. If the log is cut the table is cut with
it. No file of its own can be older or newer than the log.

Brokers that nobody writes to in this way have no table and walk nothing.
"""

import logging
import zlib

import msgspec

from tanist.broker.writer import LogWriter
from tanist.broker.writes.marks import WriteMarks
from tanist.errors import MQError, RemoteProtocolError
from tanist.model.message import Message
from tanist.model.topics import WRITES_TOPIC
from tanist.model.writes import WRITE_ID, WRITE_SUM, WriteId, WriteRun
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies import writes as bodies
from tanist.protocol.bodies.writes import WritePlan
from tanist.protocol.java_json import BAD_JSON
from tanist.protocol.properties import find_property
from tanist.protocol.record import BLANK_BYTES, MAGIC_BLANK, decode_record, peek_record
from tanist.store import MessageStore

_log = logging.getLogger(__name__)

TABLE_EVERY_BYTES = 32 << 20
"""So much of the log is walked at most when another broker becomes master, or this one starts again."""
_STEP_BYTES = 8 << 20
"""What a request waits for: some tens of milliseconds."""
_SMALL_STEP_BYTES = 256 << 10
"""What is walked in a turn that has other work."""
_MAX_TABLE_BYTES = 64 << 20
_ID_NAME = f"{WRITE_ID}\x01".encode()
_TOPIC_NAME = WRITES_TOPIC.encode()


class KeptWrites:
    """The marks of one broker, as far as its log has been looked at."""

    def __init__(self) -> None:
        self.marks = WriteMarks()
        self.repeat_count = 0
        """Messages that were refused because the log has them."""
        self.table_end = 0
        """Where the last table ends in the log."""
        self._walked_to: int | None = None
        self._is_ready = False
        self._cut_count = 0

    def catch_up(self, store: MessageStore, step_bytes: int = _STEP_BYTES) -> bool:
        """Look at what was not looked at yet, a part of it if it is much; whether that is all.

        What this broker appends as master itself is told by ``note``. What came from another one, or was cut,
        has to be found out anew.
        """
        log = store.log
        if (
            self._walked_to is None
            or log.cut_count != self._cut_count
            or (self._is_ready and log.raw_to > self._walked_to)
        ):
            self._begin(store)
        if not self._is_ready:
            self._walk(store, step_bytes)
        return self._is_ready

    def note(self, run: WriteRun, topic: str, queue_id: int, *, log_end: int, now_ms: int) -> None:
        """A run was appended."""
        last = WriteId(run.query, run.batch, run.partition, run.last)
        self.marks.note(last, topic, queue_id, total=run.sum, log_end=log_end, now_ms=now_ms)

    def put_plan(
        self, query: str, topic: str, plan: WritePlan, writer: LogWriter, *, born_host: bytes, now_ms: int
    ) -> None:
        """Keep a plan, unless there is one, and write it down. Raises if the log takes nothing, and then
        there is no plan: whoever asks again is told the same."""
        before = self.marks.plans(query, topic)
        if not self.marks.put_plan(query, topic, plan, now_ms):
            return
        try:
            self.write_table(writer, born_host=born_host, now_ms=now_ms)
        except BaseException:
            self.marks.put_back(query, topic, before)
            raise

    def forget_topic(
        self, topic: str, store: MessageStore, writer: LogWriter, *, born_host: bytes, now_ms: int
    ) -> None:
        """A topic was deleted: who makes it again may write to it again. On a slave its master sees to it.

        The log has its records still, so only a table behind them says that they do not count.
        """
        log = store.log
        if log.raw_to == log.log_end:
            return
        walked_to = -1
        while not self.catch_up(store) and self._walked_to != walked_to:
            walked_to = self._walked_to
        if self.marks.forget_topic(topic):
            try:
                self.write_table(writer, born_host=born_host, now_ms=now_ms)
            except (MQError, OSError) as error:
                _log.warning(
                    "a topic's marks of writes come back at a restart topic=%s reason=%s", topic, error
                )

    def write_table(self, writer: LogWriter, *, born_host: bytes, now_ms: int) -> None:
        """Write the table down. Raises if the log takes nothing."""
        for query in self.marks.expire(now_ms):
            _log.info("write forgotten query=%s", query)
        table = Message(
            topic=WRITES_TOPIC,
            queue_id=0,
            body=zlib.compress(encode_body(self.marks.kept()), 1),
            born_timestamp_ms=now_ms,
            born_host=born_host,
        )
        self.table_end = int(writer.append(table).end)

    def on_grown(self, store: MessageStore, writer: LogWriter, *, born_host: bytes, now_ms: int) -> None:
        """The log has grown. On a slave that is its master's affair."""
        log = store.log
        if self._is_ready and log.log_end - self.table_end < TABLE_EVERY_BYTES:
            return
        if log.raw_to == log.log_end or not self.catch_up(store, _SMALL_STEP_BYTES) or self.marks.is_empty:
            return
        if log.log_end - self.table_end >= TABLE_EVERY_BYTES:
            try:
                self.write_table(writer, born_host=born_host, now_ms=now_ms)
            except (MQError, OSError) as error:
                # The walk gets longer; nothing else is lost, and the next growth tries again.
                _log.warning("marks of writes could not be written down reason=%s", error)

    def _begin(self, store: MessageStore) -> None:
        """Go back to the last table that is in its queue, or to the end of what is indexed."""
        self.marks = WriteMarks()
        self._is_ready = False
        self._cut_count = store.log.cut_count
        self._walked_to = max(store.log.log_start, int(store.dispatcher.dispatched_to))
        self.table_end = 0
        queue = store.queues.find(WRITES_TOPIC, 0)
        if queue is None or queue.min_offset >= queue.max_offset:
            return
        for record in store.records(WRITES_TOPIC, 0, queue.max_offset - 1, 1):
            self._restore(record.body, record.log_offset + record.size_bytes)
            self._walked_to = self.table_end

    def _walk(self, store: MessageStore, step_bytes: int) -> None:
        """Take what records behind the table say."""
        log = store.log
        assert self._walked_to is not None
        position = max(self._walked_to, log.log_start)
        stop = min(log.log_end, position + step_bytes)
        while position < stop and log.log_end - position >= BLANK_BYTES:
            segment = log.segments.at(position)
            start = position - segment.start
            size, magic = peek_record(segment.view, start)
            if magic == MAGIC_BLANK:
                position = segment.end
                continue
            if size < BLANK_BYTES or position + size > log.log_end:
                break
            raw = bytes(segment.view[start : start + size])
            # Few records are ours: to find a name in one is much cheaper than to read it.
            if _ID_NAME in raw or _TOPIC_NAME in raw:
                self._take(raw)
            position += size
        self._walked_to = position
        self._is_ready = position >= log.log_end
        if self._is_ready and not self.marks.is_empty:
            _log.info("writes are known marks=%d log_end=%d", len(self.marks), log.log_end)

    def _take(self, raw: bytes) -> None:
        try:
            record = decode_record(raw)
        except RemoteProtocolError:
            return
        end = record.log_offset + record.size_bytes
        if record.topic == WRITES_TOPIC:
            self._restore(record.body, end)
            return
        properties = bytes(record.properties)
        name, total = find_property(properties, WRITE_ID), find_property(properties, WRITE_SUM)
        if name is None or total is None:
            return
        try:
            parsed, sum_ = WriteId.parse(name.decode()), int(total, 16)
        except ValueError:
            # Anybody may call a property of his own by our name.
            return
        self.marks.note(
            parsed,
            record.topic,
            record.queue_id,
            total=sum_,
            log_end=end,
            now_ms=record.store_timestamp_ms,
        )

    def _restore(self, body: bytes | memoryview, end: int) -> None:
        try:
            decompressor = zlib.decompressobj()
            text = decompressor.decompress(body, _MAX_TABLE_BYTES)
            kept = msgspec.json.decode(text, type=bodies.KeptWrites)
        except (zlib.error, *BAD_JSON) as error:
            _log.error("a table of writes can not be read log_end=%d reason=%s", end, error)
            return
        self.marks.restore(kept.writes)
        self.table_end = end
