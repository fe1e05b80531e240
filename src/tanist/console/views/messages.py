"""Messages: what a search found, and one message with all that is known of it."""

from collections.abc import Mapping, Sequence

from tanist.admin.message_search import Standing, Track
from tanist.client.received import ReceivedMessage
from tanist.console.views.base import Level, View
from tanist.model.host import host_and_port

SHOWN_BODY_BYTES = 16 << 10
"""More of a body is not shown; REST has as much as the page."""
_HEX_BYTES_A_LINE = 16
_HEX_SHOWN_BYTES = 4 << 10
_SHOWN_PROPERTIES = 200

_WORDS = {
    Standing.CONSUMED: (Level.GOOD, "consumed"),
    Standing.CONSUMED_BUT_FILTERED: (Level.NOTE, "passed over: the group does not want its tag"),
    Standing.NOT_CONSUME_YET: (Level.WARN, "not consumed yet"),
    Standing.CONSUME_BROADCASTING: (Level.NOTE, "broadcasting: only its members know"),
    Standing.PULL: (Level.NOTE, "its members choose themselves what they pull"),
    Standing.UNKNOWN: (Level.NOTE, "not known"),
}


class MessageRow(View, frozen=True, kw_only=True):
    """One message in a list."""

    message_id: str
    """The one that its producer gave it, else that of its place."""
    offset_id: str
    """That of its place: by it the message has a page."""
    topic: str
    """Where it lies; ``originTopic`` is where it was sent if that is another."""
    origin_topic: str
    tags: str | None
    keys: list[str]
    broker_name: str
    queue_id: int
    queue_offset: int
    stored_ms: int
    born_ms: int
    body_bytes: int
    reconsume_times: int


class Messages(View, frozen=True, kw_only=True):
    """What a search found, the oldest first."""

    messages: list[MessageRow]
    is_cut: bool
    """Whether there are more; those shown are the first by time, or the newest with a key."""
    failures: list[str]
    """Of brokers that could not be asked: what they have is missing."""


class Body(View, frozen=True, kw_only=True):
    """A body as it can be read: as text, or as bytes in hex if it is none."""

    kind: str
    """``text``, ``hex`` or ``empty``."""
    text: str
    size_bytes: int
    is_cut: bool


class TrackRow(View, frozen=True, kw_only=True):
    """One group, and whether it consumed the message."""

    group: str
    standing: str
    """RocketMQ's name for it."""
    words: str
    level: Level
    is_online: bool
    consumer_offset: int | None


class MessagePage(View, frozen=True, kw_only=True):
    """One message."""

    message: MessageRow
    properties: dict[str, str]
    left_out_count: int
    """So many properties are not shown."""
    body: Body
    born_host: str
    store_host: str
    log_offset: int
    stored_bytes: int
    flag: int
    tracks: list[TrackRow]
    track_failure: str | None


def message_row(message: ReceivedMessage) -> MessageRow:
    queue = message.queue
    return MessageRow(
        message_id=message.message_id,
        offset_id=message.offset_id,
        topic=queue.topic,
        origin_topic=message.topic,
        tags=message.tags,
        keys=message.keys,
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        queue_offset=message.queue_offset,
        stored_ms=message.store_timestamp_ms,
        born_ms=message.born_timestamp_ms,
        body_bytes=len(message.body),
        reconsume_times=message.reconsume_times,
    )


def messages_view(
    found: Sequence[ReceivedMessage], failures: Mapping[str, str], *, max_count: int, is_cut: bool = False
) -> Messages:
    """The first of all that were found."""
    ordered = sorted(found, key=lambda message: (message.store_timestamp_ms, message.queue_offset))
    return Messages(
        messages=[message_row(message) for message in ordered[:max_count]],
        is_cut=is_cut or len(ordered) > max_count,
        failures=[f"{name}: {reason}" for name, reason in failures.items()],
    )


def message_page(
    message: ReceivedMessage, tracks: Sequence[Track], *, track_failure: str | None = None
) -> MessagePage:
    properties = sorted(message.properties.items())
    return MessagePage(
        message=message_row(message),
        properties=dict(properties[:_SHOWN_PROPERTIES]),
        left_out_count=max(0, len(properties) - _SHOWN_PROPERTIES),
        body=body_view(message.body),
        born_host=host_and_port(*message.born_host),
        store_host=host_and_port(*message.store_host),
        log_offset=message.log_offset,
        stored_bytes=message.stored_bytes,
        flag=message.flag,
        tracks=[_track(track) for track in tracks],
        track_failure=track_failure,
    )


def body_view(body: bytes) -> Body:
    """A body as text if it is all of it, but for a character that the cut went through."""
    if not body:
        return Body(kind="empty", text="", size_bytes=0, is_cut=False)
    shown = body[:SHOWN_BODY_BYTES]
    text = _text(shown, is_cut=len(shown) < len(body))
    if text is not None:
        return Body(kind="text", text=text, size_bytes=len(body), is_cut=len(shown) < len(body))
    shown = body[:_HEX_SHOWN_BYTES]
    return Body(kind="hex", text=hex_lines(shown), size_bytes=len(body), is_cut=len(shown) < len(body))


def hex_lines(data: bytes) -> str:
    """Position, bytes in hex, and those of them that are ASCII.

    >>> print(hex_lines(b"ab\\0"))
    00000000  61 62 00                                         ab.
    """
    lines: list[str] = []
    for start in range(0, len(data), _HEX_BYTES_A_LINE):
        part = data[start : start + _HEX_BYTES_A_LINE]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        lines.append(f"{start:08x}  {part.hex(' '):<{_HEX_BYTES_A_LINE * 3}} {letters}")
    return "\n".join(lines)


def _text(data: bytes, *, is_cut: bool) -> str | None:
    """The text that these bytes are; None if they are none."""
    for dropped in range(4 if is_cut else 1):
        try:
            text = data[: len(data) - dropped].decode()
        except UnicodeDecodeError:
            continue
        is_readable = all(letter.isprintable() or letter in "\r\n\t" for letter in text)
        return text if is_readable else None
    return None


def _track(track: Track) -> TrackRow:
    level, words = _WORDS[track.standing]
    return TrackRow(
        group=track.group,
        standing=track.standing.value,
        words=f"{words}: {track.note}" if track.note else words,
        level=level,
        is_online=track.is_online,
        consumer_offset=track.consumer_offset,
    )
