"""Messages and dead letters that users of the console look for, resend and export.

A search asks brokers for what only one page needs, so it is bounded: two at a time, so many queues, so many
messages, and nobody else than the brokers that are known, whatever address stands in an id.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from tanist.admin.dead_letters import resend_dead_letter
from tanist.admin.message_search import (
    ALWAYS,
    Holder,
    TimeSpan,
    groups_of,
    message_of_id,
    messages_by_key,
    messages_by_time,
    track_message,
    walk_queue,
)
from tanist.admin.refused import NotThere
from tanist.admin.resets.reading import in_parallel
from tanist.admin.resets.times import is_span, read_span_ms, read_time_ms
from tanist.client.received import ReceivedMessage
from tanist.client.session.wire import Wire
from tanist.clock import Clock
from tanist.console.errors import BadRequest, Partly, Refused, Unknown, is_nothing_done
from tanist.console.views.messages import MessagePage, Messages, message_page, messages_view
from tanist.console.watching.lookups import Lookups
from tanist.console.watching.snapshot import Snapshot
from tanist.errors import MQError, RemoteProtocolError, ResponseError
from tanist.model.host import host_and_port, unpack_host
from tanist.model.integers import INT64_MAX
from tanist.model.route import MessageQueue
from tanist.model.topics import dlq_topic
from tanist.protocol.message_id import OffsetId, decode_offset_id

MAX_MESSAGES = 64
MAX_RESENT = 1_000
MAX_QUEUES = 256
MAX_EXPORTED = 100_000
_MAX_TRACKED_GROUPS = 50
_AT_ONCE = 4
_SEARCHES_AT_ONCE = 2
_EXPORTS_AT_ONCE = 2
_MAX_ASKED = 16
_DEFAULT_SPAN_MS = 3_600_000
_MAX_TEXT_CHARS = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQuery:
    """What somebody looks for: an id, a key of a topic, or all of a topic in a span of time."""

    topic: str = ""
    message_id: str = ""
    key: str = ""
    span: TimeSpan = ALWAYS

    @property
    def is_empty(self) -> bool:
        return not (self.topic or self.message_id or self.key)


class MessageDesk:
    """Looks into the brokers that a snapshot names."""

    def __init__(self, wire: Wire, lookups: Lookups, clock: Clock) -> None:
        self._wire = wire
        self._lookups = lookups
        self._clock = clock
        self._turns = asyncio.Semaphore(_SEARCHES_AT_ONCE)
        self._export_turns = asyncio.Semaphore(_EXPORTS_AT_ONCE)

    def query(self, *, topic: str, message_id: str, key: str, begin: str, end: str) -> MessageQuery:
        """What these texts of a form mean. Raises BadRequest."""
        texts = [text.strip() for text in (topic, message_id, key)]
        if any(len(text) > _MAX_TEXT_CHARS for text in texts):
            raise BadRequest(f"a topic, an id and a key have at most {_MAX_TEXT_CHARS} characters")
        topic, message_id, key = texts
        is_ever = bool(key or message_id) and not begin and not end
        span = ALWAYS if is_ever else self.span(begin, end)
        return MessageQuery(topic=topic, message_id=message_id, key=key, span=span)

    def span(self, begin: str, end: str, *, default_ms: int = _DEFAULT_SPAN_MS) -> TimeSpan:
        """The time between two texts: ``-2h``, or a time; by default the last hour. Raises BadRequest."""
        now_ms = self._clock.now_ms()
        begin_ms = _time_ms(begin, now_ms, default_ms=now_ms - default_ms)
        end_ms = _time_ms(end, now_ms, default_ms=now_ms)
        if begin_ms > end_ms:
            raise BadRequest(f"it would begin at {begin or 'the default'} and end before that, at {end}")
        return TimeSpan(begin_ms, end_ms)

    async def search(self, snapshot: Snapshot, query: MessageQuery) -> Messages:
        """What is found. Raises BadRequest for a question that can not be asked."""
        if query.message_id:
            return await self._by_id(snapshot, query)
        if not query.topic:
            raise BadRequest("name the topic: keys and times are looked for in one")
        self._require(snapshot, query.topic)
        if query.key:
            return await self._by_key(snapshot, query, query.key, is_unique=False)
        return await self._once(
            ("messages", query.topic, *map(str, query.span)),
            lambda: self._by_time(snapshot, query.topic, query.span),
        )

    async def page(self, snapshot: Snapshot, offset_id: str) -> MessagePage:
        """One message, and who consumed it. Raises Unknown."""

        async def look() -> MessagePage:
            message, holder = await self._at(snapshot, offset_id)
            try:
                groups = await groups_of(self._wire, holder, message.queue.topic)
                tracks = await in_parallel(
                    groups[:_MAX_TRACKED_GROUPS],
                    lambda group: track_message(self._wire, holder, message, group),
                    at_once=_AT_ONCE,
                )
            except MQError as error:
                return message_page(message, [], track_failure=_reason(error))
            return message_page(message, tracks)

        return await self._once(("message", offset_id.upper()), look)

    async def dead_letters(self, snapshot: Snapshot, group: str, span: TimeSpan) -> Messages:
        """What a group gave up on in a span of time."""
        topic = dlq_topic(group)
        if not self._holders(snapshot, topic):
            return messages_view([], {}, max_count=MAX_MESSAGES)
        tables = [look.tables.dead_letters.get(group) for look in snapshot.brokers]
        total = sum(found.total_count for found in tables if found is not None)
        # A page that is told of new ones is not shown what was found before.
        return await self._once(
            ("dead letters", topic, str(total), *map(str, span)), lambda: self._by_time(snapshot, topic, span)
        )

    async def walk_dead_letters(
        self, snapshot: Snapshot, group: str, span: TimeSpan
    ) -> AsyncGenerator[ReceivedMessage]:
        """All that a group gave up on in a span of time, queue by queue, read as it is wanted."""
        for holder, queue in self._queues(snapshot, dlq_topic(group)):
            async with aclosing(walk_queue(self._wire, holder, queue, span)) as messages:
                async for message in messages:
                    yield message

    async def export_dead_letters(
        self, snapshot: Snapshot, group: str, span: TimeSpan
    ) -> AsyncGenerator[ReceivedMessage | None]:
        """The same when it is its turn, and not without end: None comes last if there are more."""
        count = 0
        async with self._export_turns, aclosing(self.walk_dead_letters(snapshot, group, span)) as messages:
            async for message in messages:
                count += 1
                if count > MAX_EXPORTED:
                    yield None
                    return
                yield message

    async def resend(self, snapshot: Snapshot, group: str, offset_ids: Sequence[str]) -> str:
        """Give a group these dead letters again; what was done, in words. Raises Refused, Partly."""
        if not offset_ids:
            raise Refused("no dead letter is chosen; nothing was sent")
        if len(offset_ids) > MAX_RESENT:
            raise Refused(f"{len(offset_ids)} are chosen, and at most {MAX_RESENT} are sent at once")
        messages = [(await self._at(snapshot, offset_id))[0] for offset_id in offset_ids]
        foreign = [message for message in messages if message.queue.topic != dlq_topic(group)]
        if foreign:
            raise Refused(f"{foreign[0].offset_id} is no dead letter of {group}; nothing was sent")
        return await self._resend(snapshot, group, messages)

    async def resend_range(self, snapshot: Snapshot, group: str, span: TimeSpan) -> str:
        """The same with all of a span of time, unless they are too many to be meant."""
        found: list[ReceivedMessage] = []
        async with aclosing(self.walk_dead_letters(snapshot, group, span)) as messages:
            async for message in messages:
                found.append(message)
                if len(found) > MAX_RESENT:
                    raise Refused(
                        f"more than {MAX_RESENT} dead letters are in this time; nothing was sent. Choose a "
                        "shorter one"
                    )
        if not found:
            raise Refused("no dead letter is in this time; nothing was sent")
        return await self._resend(snapshot, group, found)

    async def _resend(self, snapshot: Snapshot, group: str, messages: Sequence[ReceivedMessage]) -> str:
        masters = {look.name: look.address for look in snapshot.brokers if look.is_master and look.is_up}
        failures: list[MQError] = []
        first = ""

        async def send(message: ReceivedMessage) -> None:
            nonlocal first
            name = message.queue.broker_name
            try:
                if name not in masters:
                    raise Refused(f"{name} has no master that could take it")
                await resend_dead_letter(self._wire, masters[name], message, group)
            except MQError as error:
                failures.append(error)
                first = first or f"{message.offset_id}: {_reason(error)}"

        await in_parallel(messages, send, at_once=_AT_ONCE)
        done = f"{len(messages) - len(failures)} of {len(messages)} dead letters go to {group} again"
        if failures:
            problem = f"{done}; {len(failures)} do not, the first because of {first}"
            is_refused = len(failures) == len(messages) and all(map(is_nothing_done, failures))
            raise Refused(problem) if is_refused else Partly(problem)
        return done

    async def _by_id(self, snapshot: Snapshot, query: MessageQuery) -> Messages:
        """By the place that an id names, or as the id that a producer gave: they look alike."""
        try:
            message, _holder = await self._at(snapshot, query.message_id)
            return messages_view([message], {}, max_count=1)
        except Unknown as error:
            failure = str(error)
        if query.topic:
            self._require(snapshot, query.topic)
            return await self._by_key(snapshot, query, query.message_id, is_unique=True)
        return messages_view([], {"by its place": failure}, max_count=1)

    async def _by_key(
        self, snapshot: Snapshot, query: MessageQuery, key: str, *, is_unique: bool
    ) -> Messages:
        holders = self._holders(snapshot, query.topic)
        failures: dict[str, str] = {}

        async def ask(holder: Holder) -> list[ReceivedMessage]:
            try:
                return await messages_by_key(
                    *(self._wire, holder, query.topic, key),
                    is_unique=is_unique,
                    span=query.span,
                    max_count=MAX_MESSAGES,
                )
            except MQError as error:
                failures[holder.broker_name] = _reason(error)
                return []

        async def look() -> Messages:
            found = await in_parallel(holders, ask, at_once=_AT_ONCE)
            return messages_view(
                [message for part in found for message in part], failures, max_count=MAX_MESSAGES
            )

        return await self._once(("key", query.topic, key, str(is_unique), *map(str, query.span)), look)

    async def _by_time(self, snapshot: Snapshot, topic: str, span: TimeSpan) -> Messages:
        failures: dict[str, str] = {}

        async def ask(place: tuple[Holder, MessageQueue]) -> list[ReceivedMessage]:
            holder, queue = place
            try:
                # One more than is shown says whether there are more.
                return await messages_by_time(self._wire, holder, queue, span, max_count=MAX_MESSAGES + 1)
            except MQError as error:
                failures[holder.broker_name] = _reason(error)
                return []

        places = self._queues(snapshot, topic)
        found = await in_parallel(places[:MAX_QUEUES], ask, at_once=_AT_ONCE)
        if len(places) > MAX_QUEUES:
            failures[topic] = f"only {MAX_QUEUES} of its {len(places)} queues were looked at"
        return messages_view(
            [message for part in found for message in part], failures, max_count=MAX_MESSAGES
        )

    async def _at(self, snapshot: Snapshot, text: str) -> tuple[ReceivedMessage, Holder]:
        """The message at a place, from who of its replica group answers. Raises Unknown."""
        try:
            place = decode_offset_id(text.strip())
        except RemoteProtocolError as error:
            raise Unknown(f"this is no id of a place: {error}") from error
        try:
            return await message_of_id(self._wire, _holders_of(snapshot, place), text.strip())
        except NotThere as error:
            raise Unknown(str(error)) from error

    async def _once(self, question: tuple[str, ...], ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Two searches at a time, and one for all who ask the same."""

        async def take_turn() -> Any:
            async with self._turns:
                return await ask()

        return await self._lookups.find(question, take_turn)

    def _require(self, snapshot: Snapshot, topic: str) -> None:
        if not self._holders(snapshot, topic):
            raise Unknown(f"no broker has a topic {topic}")

    def _holders(self, snapshot: Snapshot, topic: str) -> list[Holder]:
        """Of each replica group that has the topic the broker that is asked about it."""
        looks = (look for look in snapshot.speakers() if topic in look.tables.topics)
        return [Holder(look.name, look.address) for look in looks]

    def _queues(self, snapshot: Snapshot, topic: str) -> list[tuple[Holder, MessageQueue]]:
        found: list[tuple[Holder, MessageQueue]] = []
        for look in snapshot.speakers():
            config = look.tables.topics.get(topic)
            for queue_id in range(0 if config is None else config.read_queue_count):
                queue = MessageQueue(topic=topic, broker_name=look.name, queue_id=queue_id)
                found.append((Holder(look.name, look.address), queue))
        return found


def _holders_of(snapshot: Snapshot, place: OffsetId) -> list[Holder]:
    """Who is asked for a message of this place: only brokers that are known here, never who an id names.

    All are asked if none is listed with the address of the id: they may be listed by a name.
    """
    address = host_and_port(*unpack_host(place.store_host))
    look = snapshot.find(address)
    speakers = [speaker for speaker in snapshot.speakers() if look is None or speaker.name == look.name]
    return [Holder(speaker.name, speaker.address) for speaker in speakers[:_MAX_ASKED]]


def _time_ms(text: str, now_ms: int, *, default_ms: int) -> int:
    text = text.strip()
    if not text:
        return default_ms
    if is_span(text):
        return now_ms - read_span_ms(text)
    found = read_time_ms(text, UTC)
    if found is None or not 0 <= found <= INT64_MAX:
        raise BadRequest(f"{text[:40]} is no time; use -2h, 2026-11-18T09:00 (UTC) or milliseconds")
    return found


def _reason(error: MQError) -> str:
    return error.remark if isinstance(error, ResponseError) else str(error)
