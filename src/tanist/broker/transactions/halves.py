"""Transactions: the first half of a message waits until its producer says what becomes of it. Pure.

    send --> half topic --commit--> the message's own queue
                |    \\----rollback--> nowhere
                |--nobody says--> half topic again, and a producer of the group is asked
                |--asked too often--> the topic of those given up

A half that is asked for is appended again, as RocketMQ does, so that it says how often that happened.
A transaction is known by its *origin*, where its first half lies in the log. Our copies carry it in the
field in which a committed message tells where its half lies. RocketMQ leaves that 0 in its copies, and
never looks; ours have ``-1 - origin`` there, because 0 is where the first half of a new log lies.
"""

import msgspec

from tanist.errors import ResponseError
from tanist.model.integers import INT32_MAX
from tanist.model.message import TRANSACTION_MASK, Message, SysFlag
from tanist.model.property_names import (
    CHECK_IMMUNITY_TIME_IN_SECONDS,
    PGROUP,
    REAL_QID,
    REAL_TOPIC,
    TRAN_PREPARED_QUEUE_OFFSET,
    TRANSACTION_CHECK_TIMES,
    TRANSACTION_ID,
    UNIQ_KEY,
)
from tanist.model.topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from tanist.protocol.codes import ResponseCode
from tanist.protocol.properties import find_property, replace_properties
from tanist.protocol.record import MAX_PROPERTIES_BYTES, Record

HALF_QUEUE_ID = 0

_COMMITTED = int(SysFlag.COMMIT)
_COPY_ROOM_BYTES = 64
"""What a copy's properties may have more than the first half's."""
_MAX_DIGITS = 12
_HOUR_MS = 3_600_000


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """When a producer is asked, and when no more."""

    timeout_ms: int
    interval_ms: int
    max_checks: int
    reserved_hours: int
    """How long the log keeps its files: a half that is older than this may go with its file."""

    @property
    def reserved_ms(self) -> int:
        return self.reserved_hours * _HOUR_MS


def prepare(message: Message) -> Message:
    """The first half of a transaction as it lies until it is committed or rolled back."""
    if not find_property(message.properties, PGROUP):
        raise ResponseError(
            ResponseCode.MESSAGE_ILLEGAL, f"a message of a transaction names its producer group in {PGROUP}"
        )
    unique_id = find_property(message.properties, UNIQ_KEY)
    properties = replace_properties(
        message.properties,
        {
            TRANSACTION_ID: unique_id.decode("utf-8", "replace") if unique_id else None,
            REAL_TOPIC: message.topic,
            REAL_QID: str(message.queue_id),
            # These are for the broker to say.
            TRANSACTION_CHECK_TIMES: None,
            TRAN_PREPARED_QUEUE_OFFSET: None,
        },
    )
    if len(properties) > MAX_PROPERTIES_BYTES - _COPY_ROOM_BYTES:
        raise ResponseError(
            ResponseCode.MESSAGE_ILLEGAL,
            f"{len(properties)} bytes of properties with the broker's own: "
            f"a transaction takes at most {MAX_PROPERTIES_BYTES - _COPY_ROOM_BYTES}",
        )
    return msgspec.structs.replace(
        without_transaction(message), topic=HALF_TOPIC, queue_id=HALF_QUEUE_ID, properties=properties
    )


def without_transaction(message: Message) -> Message:
    """The message with the flag of one that is in no transaction: as such it enters its queue."""
    return msgspec.structs.replace(message, sys_flag=message.sys_flag & ~TRANSACTION_MASK)


class Half:
    """A half as it was read from the log, and what can be made of it."""

    __slots__ = ("properties", "record")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.properties = bytes(record.properties)

    @property
    def origin(self) -> int:
        """Where the first half of this transaction lies, as far as the record itself says."""
        link = self.record.prepared_transaction_offset
        return -1 - link if link < 0 else self.record.log_offset

    @property
    def first_queue_offset(self) -> int | None:
        """Where RocketMQ says the first half lies, if it appended this one in its place before asking."""
        return _number(find_property(self.properties, TRAN_PREPARED_QUEUE_OFFSET))

    @property
    def producer_group(self) -> str:
        return self._text(PGROUP)

    @property
    def unique_id(self) -> str:
        return self._text(UNIQ_KEY)

    @property
    def check_count(self) -> int:
        """How often a producer was asked."""
        return _number(find_property(self.properties, TRANSACTION_CHECK_TIMES)) or 0

    @property
    def target(self) -> tuple[str, int] | None:
        """The topic and the queue that the message is for; None if it does not say, and is no half at all."""
        topic, queue_id = self._text(REAL_TOPIC), _number(find_property(self.properties, REAL_QID))
        return (topic, queue_id) if topic and queue_id is not None and queue_id <= INT32_MAX else None

    def check_claim(self, *, group: str, queue_offset: int) -> None:
        """Refuse whoever does not know the transaction that it wants to end."""
        if self.producer_group != group:
            problem = f"the transaction is not of producer group {group}"
        elif self.record.queue_offset != queue_offset:
            problem = f"the half lies at queue offset {self.record.queue_offset}, not {queue_offset}"
        elif self.target is None:
            problem = "the half names no topic and queue"
        else:
            return
        raise ResponseError(ResponseCode.SYSTEM_ERROR, problem)

    def due_ms(self, rules: Rules) -> int:
        """When a producer is asked, unless the transaction ends before."""
        record = self.record
        if self.check_count:
            return record.store_timestamp_ms + rules.interval_ms
        # What RocketMQ appended again before it asked was stored for the first time when it was born.
        stored_ms = record.store_timestamp_ms if self.first_queue_offset is None else record.born_timestamp_ms
        immunity_ms = self._immunity_ms
        if immunity_ms is None:
            return stored_ms + rules.timeout_ms
        # Later there would be nothing to ask about, and all behind it would have to be remembered.
        return stored_ms + min(immunity_ms, rules.reserved_ms)

    def is_too_late(self, rules: Rules, *, now_ms: int) -> bool:
        """Whether only the answer to a question may end it: its producer set a time, and that is over."""
        immunity_ms = self._immunity_ms
        if immunity_ms is None:
            return False
        return now_ms - self.record.born_timestamp_ms > max(immunity_ms, rules.timeout_ms)

    def is_hopeless(self, rules: Rules, *, now_ms: int) -> bool:
        """Whether to ask no more."""
        age_ms = now_ms - self.record.born_timestamp_ms
        return self.check_count >= rules.max_checks or age_ms > rules.reserved_ms

    def committed(self) -> Message:
        """The message as consumers get it. Its properties are the half's, as in RocketMQ."""
        return msgspec.structs.replace(
            self.shown(self._message(HALF_TOPIC, HALF_QUEUE_ID, self.properties)),
            sys_flag=self.record.sys_flag & ~TRANSACTION_MASK | _COMMITTED,
            prepared_transaction_offset=self.record.log_offset,
        )

    def copied(self, origin: int) -> Message:
        """The half that takes this one's place when its producer is asked once more."""
        properties = replace_properties(self.properties, {TRANSACTION_CHECK_TIMES: str(self.check_count + 1)})
        message = self._message(HALF_TOPIC, HALF_QUEUE_ID, properties)
        return msgspec.structs.replace(message, prepared_transaction_offset=-1 - origin)

    def shown(self, message: Message) -> Message:
        """The half, or a copy of it, as its producer knows it: with the topic and the queue it is for."""
        assert self.target is not None
        topic, queue_id = self.target
        return msgspec.structs.replace(message, topic=topic, queue_id=queue_id)

    def given_up(self) -> Message:
        """The message as operators find it when nobody said what becomes of it."""
        return self._message(CHECK_MAX_TIME_TOPIC, 0, self.properties)

    @property
    def _immunity_ms(self) -> int | None:
        """For how long its producer wants not to be asked, if it said so."""
        seconds = _number(find_property(self.properties, CHECK_IMMUNITY_TIME_IN_SECONDS))
        return None if seconds is None else seconds * 1000

    def _text(self, name: str) -> str:
        return (find_property(self.properties, name) or b"").decode("utf-8", "replace")

    def _message(self, topic: str, queue_id: int, properties: bytes) -> Message:
        record = self.record
        return Message(
            topic=topic,
            queue_id=queue_id,
            body=record.body,
            properties=properties,
            flag=record.flag,
            sys_flag=record.sys_flag,
            born_timestamp_ms=record.born_timestamp_ms,
            born_host=record.born_host,
            reconsume_times=record.reconsume_times,
        )


def _number(text: bytes | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and len(text) <= _MAX_DIGITS else None
