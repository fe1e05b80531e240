"""Messages: find them, see who consumed them, read them from queues."""

import time
from collections import Counter
from datetime import UTC, datetime

import click
from rich.table import Table

from tanist.admin import browsing, messages
from tanist.admin.message_search import Standing, TimeSpan
from tanist.admin.resets.times import read_time_ms
from tanist.admin.rows import Row
from tanist.admin.sending import sending
from tanist.cli.commanding import TOPIC, Asker, command
from tanist.cli.exit_codes import Exit
from tanist.cli.ha_views import time_of
from tanist.cli.shown import Shown, listing, table_of
from tanist.client import Message
from tanist.client.received import ReceivedMessage
from tanist.model.integers import INT64_MAX
from tanist.model.property_names import KEYS, TAGS

_SHOWN_BODY_CHARS = 200
_CONSUMED = ("CR_SUCCESS", "CR_COMMIT")
"""What a client says of a message that it could consume."""


def _charset(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    try:
        b"\xff".decode(name, "backslashreplace")
    except (LookupError, ValueError) as error:
        raise click.BadParameter(f"{name!r} is no character set; use utf-8, gbk, latin-1 …") from error
    return name


_ID = click.option("-i", "--msgId", "message_id", required=True, help="The id of the message.")
_FOR_WHOM = (
    click.option("-g", "--consumerGroup", "group", help="Have a client of this group consume it now."),
    click.option("-d", "--clientId", "client_id", help="That client."),
)
_LIGHT = click.option("-c", "--cluster", hidden=True, help="For light queues, which Tanist has not.")
_CHARSET_HELP = "The body's character set."
_CHARSET = click.option(
    "-f", "--bodyFormat", "charset", default="utf-8", callback=_charset, help=_CHARSET_HELP
)
_CHARSET_NAME = click.option(
    "-c", "--charsetName", "charset", default="utf-8", callback=_charset, help=_CHARSET_HELP
)
_FROM_MS = click.option(
    "-b", "--beginTimestamp", "begin_ms", type=int, default=0, help="From then on, in ms."
)
_TO_MS = click.option(
    "-e", "--endTimestamp", "end_ms", type=int, default=INT64_MAX, help="Up to then, in ms."
)


class Time(click.ParamType["int"]):
    """A moment as ``mqadmin`` reads it, or as ISO 8601 has it; in milliseconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if str(value) == "currentTimeMillis":
            return time.time_ns() // 1_000_000
        found = read_time_ms(str(value), datetime.now().astimezone().tzinfo or UTC)
        if found is None:
            self.fail(
                f"{value!r} is no time; use milliseconds, yyyy-MM-dd#HH:mm:ss:SSS or ISO 8601", param, ctx
            )
        return found


BEGIN = click.option("-b", "--beginTimestamp", "begin_ms", type=Time(), help="From then on.")
END = click.option("-e", "--endTimestamp", "end_ms", type=Time(), help="Up to then.")


class TagRow(Row, frozen=True, kw_only=True):
    """How many messages have a tag."""

    tag: str | None
    count: int


class TrackRow(Row, frozen=True, kw_only=True):
    """What became of a message in a group."""

    consumer_group: str
    track_type: Standing
    exception_desc: str | None


@command(
    "queryMsgById",
    _ID,
    TOPIC,
    *_FOR_WHOM,
    click.option("-s", "--sendMessage", "is_resent", type=bool, default=False, help="Send it once more."),
    click.option("-u", "--unitName", "unit", hidden=True),
    _CHARSET,
    _LIGHT,
    repeats=True,
)
async def by_id(
    ask: Asker,
    *,
    message_id: str,
    topic: str,
    group: str | None,
    client_id: str | None,
    is_resent: bool,
    unit: str | None,
    charset: str,
    cluster: str | None,
) -> Shown:
    """Show a message by its id and who consumed it; several ids with commas.

    With -g and -d that client consumes it now, whatever its offset; with -s true it is sent once more.
    """
    del unit, cluster
    name_server = await ask.name_server()
    found = [
        message
        for each in message_id.split(",")
        for message in await messages.find_by_id(ask.wire, name_server, topic=topic, message_id=each.strip())
    ]
    if group is not None and client_id is not None:
        return await _consume_now(ask, found, group, client_id)
    if is_resent:
        return await _resend(ask, found)
    return await _whole(ask, found, charset=charset)


@command(
    "queryMsgByUniqueKey",
    _ID,
    TOPIC,
    *_FOR_WHOM,
    click.option("-a", "--showAll", "is_all", is_flag=True, help="All with this id, not only the first."),
    _LIGHT,
    repeats=True,
)
async def by_unique_key(
    ask: Asker,
    *,
    message_id: str,
    topic: str,
    group: str | None,
    client_id: str | None,
    is_all: bool,
    cluster: str | None,
) -> Shown:
    """Show a message by the id that its producer gave it, and who consumed it."""
    del cluster
    found = await messages.find_by_key(
        ask.wire,
        await ask.name_server(),
        topic=topic,
        key=message_id,
        max_count=32,
        is_unique_key=True,
        what="id",
    )
    if group is not None and client_id is not None:
        return await _consume_now(ask, found[:1], group, client_id)
    return await _whole(ask, found if is_all else found[:1])


@command(
    "queryMsgByKey",
    click.option("-k", "--msgKey", "key", required=True, help="The key."),
    TOPIC,
    click.option("-m", "--maxNum", "max_count", type=click.IntRange(1), default=messages.DEFAULT_COUNT),
    _FROM_MS,
    _TO_MS,
    _LIGHT,
    repeats=True,
)
async def by_key(
    ask: Asker, *, key: str, topic: str, max_count: int, begin_ms: int, end_ms: int, cluster: str | None
) -> Shown:
    """List the messages with a key, the oldest first."""
    del cluster
    found = await messages.find_by_key(
        ask.wire,
        await ask.name_server(),
        topic=topic,
        key=key,
        max_count=max_count,
        span=TimeSpan(begin_ms, end_ms),
    )
    return listing(messages.key_rows(found), messages.KeyRow)


@command(
    "queryMsgByOffset",
    TOPIC,
    click.option("-b", "--brokerName", "broker_name", required=True, help="The broker's name."),
    click.option("-i", "--queueId", "queue_id", type=int, required=True, help="The queue."),
    click.option("-o", "--offset", type=click.IntRange(0), required=True, help="The offset in it."),
    _CHARSET,
    repeats=True,
)
async def by_offset(
    ask: Asker, *, topic: str, broker_name: str, queue_id: int, offset: int, charset: str
) -> Shown:
    """Show the message at an offset of a queue, and who consumed it."""
    wanted = browsing.Wanted(topic, broker_name, queue_id, offset=offset, max_count=1)
    found = [each async for each in browsing.browse(ask.wire, await ask.name_server(), wanted)]
    if not found or found[0].queue_offset != offset:
        raise browsing.NotThere(f"queue {queue_id} of {topic} on {broker_name} has no message at {offset}")
    return await _whole(ask, found, charset=charset)


@command(
    "queryMsgTraceById",
    _ID,
    click.option("-t", "--traceTopic", "topic", help="The topic of traces, if it is not the usual one."),
    click.option("-c", "--maxNum", "max_count", type=click.IntRange(1), default=messages.DEFAULT_COUNT),
    _FROM_MS,
    _TO_MS,
    repeats=True,
)
async def trace_by_id(
    ask: Asker, *, message_id: str, topic: str | None, max_count: int, begin_ms: int, end_ms: int
) -> Shown:
    """Show what clients told of a message: who sent it, who consumed it, how long each took."""
    found = await messages.find_traces(
        ask.wire,
        await ask.name_server(),
        message_id=message_id,
        topic=topic,
        span=TimeSpan(begin_ms, end_ms),
        max_count=max_count,
    )
    lines = [
        f"{time_of(each.timestamp_ms)} {type(each).__name__.removesuffix('Trace')} {each.group} "
        + " ".join(f"{name}={getattr(each, name)}" for name in ("cost_ms", "is_ok") if hasattr(each, name))
        for each in found
    ]
    return Shown(
        [{"kind": type(each).__name__.removesuffix("Trace"), "trace": each} for each in found], lines
    )


@command(
    "printMsg",
    TOPIC,
    _CHARSET_NAME,
    click.option("-s", "--subExpression", "expression", help="Tags, as TagA || TagB."),
    BEGIN,
    END,
    click.option("-d", "--printBody", "is_body", type=bool, default=True, help="With bodies."),
    click.option("-l", "--lmqParentTopic", hidden=True, expose_value=False),
    repeats=True,
)
async def print_messages(
    ask: Asker,
    *,
    topic: str,
    charset: str,
    expression: str | None,
    begin_ms: int | None,
    end_ms: int | None,
    is_body: bool,
) -> Shown:
    """Read all messages of a topic, between two times if they are given. No group is moved."""
    wanted = browsing.Wanted(topic, begin_ms=begin_ms, end_ms=end_ms, expression=expression)
    return await _browsed(ask, wanted, charset=charset, is_body=is_body)


@command(
    "printMsgByQueue",
    TOPIC,
    click.option("-a", "--brokerName", "broker_name", required=True, help="The broker's name."),
    click.option("-i", "--queueId", "queue_id", type=int, required=True, help="The queue."),
    _CHARSET_NAME,
    click.option("-s", "--subExpression", "expression", help="Tags, as TagA || TagB."),
    BEGIN,
    END,
    click.option("-p", "--print", "--print msg", "is_printed", type=bool, default=False, help="Show them."),
    click.option("-d", "--printBody", "is_body", type=bool, default=False, help="With bodies."),
    click.option("-f", "--calculate", "is_counted", type=bool, default=False, help="Count them by tag."),
    repeats=True,
)
async def print_queue(
    ask: Asker,
    *,
    topic: str,
    broker_name: str,
    queue_id: int,
    charset: str,
    expression: str | None,
    begin_ms: int | None,
    end_ms: int | None,
    is_printed: bool,
    is_body: bool,
    is_counted: bool,
) -> Shown:
    """Read the messages of one queue, or count them by tag. No group is moved."""
    wanted = browsing.Wanted(
        topic, broker_name, queue_id, begin_ms=begin_ms, end_ms=end_ms, expression=expression
    )
    if not is_counted:
        shown = await _browsed(ask, wanted, charset=charset, is_body=is_body)
        return shown if is_printed or is_body else Shown(shown.value, shown.parts[-1:])
    tags = Counter([each.tags async for each in browsing.browse(ask.wire, await ask.name_server(), wanted)])
    return listing([TagRow(tag=tag, count=count) for tag, count in tags.most_common()], TagRow, none="none")


@command(
    "consumeMessage",
    TOPIC,
    click.option("-b", "--brokerName", "broker_name", help="Only of this broker."),
    click.option("-i", "--queueId", "queue_id", type=int, help="Only of this queue."),
    click.option("-o", "--offset", type=click.IntRange(0), help="From this offset on."),
    click.option("-g", "--consumerGroup", "group", help="As which group to ask; it is not moved."),
    click.option("-s", "--beginTimestamp", "begin_ms", type=Time(), help="From then on."),
    END,
    click.option(
        "-c", "--MessageNumber", "count", type=click.IntRange(1), default=128, help="At most so many."
    ),
    repeats=True,
)
async def consume_message(
    ask: Asker,
    *,
    topic: str,
    broker_name: str | None,
    queue_id: int | None,
    offset: int | None,
    group: str | None,
    begin_ms: int | None,
    end_ms: int | None,
    count: int,
) -> Shown:
    """Read some messages of a topic, a broker or a queue. No group is moved."""
    wanted = browsing.Wanted(topic, broker_name, queue_id, offset, begin_ms, end_ms, max_count=count)
    return await _browsed(ask, wanted if group is None else wanted._replace(group=group))


@command(
    "queryCq",
    TOPIC,
    click.option("-q", "--queue", "queue_id", type=int, required=True, help="The queue."),
    click.option("-i", "--index", "start", type=int, required=True, help="From this offset on."),
    click.option("-c", "--count", type=int, default=10, help="So many entries."),
    click.option("-b", "--broker", "--brokerAddr", "address", required=True, help="The broker, host:port."),
    click.option("-g", "--consumer", "group", help="What this group subscribes to."),
    repeats=True,
)
async def query_queue(
    ask: Asker, *, topic: str, queue_id: int, start: int, count: int, address: str, group: str | None
) -> Shown:
    """Show raw entries of a consume queue: where in the log each message lies."""
    found = await messages.queue_entries(
        ask.wire, address, topic=topic, queue_id=queue_id, start=start, count=count, group=group
    )
    table = Table("offset", "log offset", "size", "tags code", box=None)
    for number, entry in enumerate(found.entries, start):
        table.add_row(str(number), str(entry.log_offset), str(entry.size_bytes), str(entry.tags_code))
    return Shown(found, [f"the queue holds [{found.min_offset}, {found.max_offset})", table])


COMMANDS = (
    by_id,
    by_unique_key,
    by_key,
    by_offset,
    trace_by_id,
    print_messages,
    print_queue,
    consume_message,
    query_queue,
)


async def _whole(ask: Asker, found: list[ReceivedMessage], *, charset: str = "utf-8") -> Shown:
    name_server = await ask.name_server()
    values: list[object] = []
    parts: list[str | Table] = []
    for message in found:
        view = messages.view_of(message, charset=charset)
        tracks = [
            TrackRow(consumer_group=each.group, track_type=each.track_type, exception_desc=each.note or None)
            for each in await messages.tracks_of(ask.wire, name_server, message)
        ]
        values.append({"message": view, "tracks": tracks})
        parts += [*_lines(view), table_of(tracks, TrackRow) if tracks else "  no group consumes the topic"]
    return Shown(values, parts)


def _lines(view: messages.MessageView) -> list[str]:
    hidden = ("body",)
    lines = [
        f"  {name.removesuffix('_at_ms').replace('_', ' ')}: "
        + (time_of(getattr(view, name)) if name.endswith("_at_ms") else str(getattr(view, name)))
        for name in view.__struct_fields__
        if name not in hidden
    ]
    more = "…" if len(view.body) > _SHOWN_BODY_CHARS else ""
    return [view.message_id, *lines, f"  body: {view.body[:_SHOWN_BODY_CHARS]}{more}"]


async def _browsed(
    ask: Asker, wanted: browsing.Wanted, *, charset: str = "utf-8", is_body: bool = True
) -> Shown:
    found = [
        messages.view_of(each, charset=charset)
        async for each in browsing.browse(ask.wire, await ask.name_server(), wanted)
    ]
    lines = [
        f"{each.broker_name}:{each.queue_id}@{each.queue_offset} {time_of(each.stored_at_ms)} "
        f"{each.message_id} tags={each.tags} keys={','.join(each.keys)}"
        + (f" {each.body[:_SHOWN_BODY_CHARS]}" if is_body else "")
        for each in found
    ]
    return Shown(found, [*lines, f"{len(found)} messages"])


async def _consume_now(ask: Asker, found: list[ReceivedMessage], group: str, client_id: str) -> Shown:
    _refuse_repeated(ask)
    name_server = await ask.name_server()
    results = [
        await messages.consume_directly(
            ask.wire, name_server, group=group, client_id=client_id, message=message
        )
        for message in found
    ]
    lines = [
        f"{client_id}: {each.consume_result} in {each.spent_ms} ms"
        + (f": {each.remark}" if each.remark else "")
        for each in results
    ]
    consumed = [each.consume_result in _CONSUMED for each in results]
    partly = Exit.PARTLY if any(consumed) else Exit.FAILED
    return Shown(results, lines, Exit.DONE if all(consumed) else partly)


async def _resend(ask: Asker, found: list[ReceivedMessage]) -> Shown:
    _refuse_repeated(ask)
    lines: list[str] = []
    async with sending(ask.access, ask.name_servers) as producer:
        for message in found:
            receipt = await producer.send(again(message))
            lines.append(f"{message.message_id} is sent once more as {receipt.message_id}")
    return Shown(lines, lines)


def again(message: ReceivedMessage) -> Message:
    """The same message as a program would send it: what brokers and clients put in its properties is new."""
    own = {
        name: value
        for name, value in message.properties.items()
        if name not in (TAGS, KEYS) and not name.isupper()
    }
    return Message(
        message.topic, message.body, tags=message.tags, keys=message.keys, properties=own, flag=message.flag
    )


def _refuse_repeated(ask: Asker) -> None:
    if ask.is_repeated:
        raise click.UsageError("--interval is for what only looks; this would be done again each time")
