"""Dead letters: which groups gave up on messages, and those messages as a file."""

import base64
import csv
import io
from collections.abc import Sequence

import msgspec

from tanist.client.received import ReceivedMessage
from tanist.console.views.base import Level, View
from tanist.console.views.messages import MessageRow, Messages, message_row
from tanist.console.watching.snapshot import Snapshot

_RECENT_MS = 3_600_000
"""A dead letter that came since asks for somebody."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class DeadLetterGroup(View, frozen=True, kw_only=True):
    """One group that gave up on messages."""

    group: str
    kept_count: int
    total_count: int
    """Those that are deleted by now too."""
    last_ms: int
    brokers: list[str]
    level: Level


class DeadLetters(View, frozen=True, kw_only=True):
    """All groups that ever gave up on a message."""

    taken_ms: int
    groups: list[DeadLetterGroup]


class DeadLettersOfGroup(View, frozen=True, kw_only=True):
    """What one group gave up on, in a span of time."""

    group: str
    begin_ms: int
    end_ms: int
    found: Messages


class ExportedMessage(MessageRow, frozen=True, kw_only=True):
    """One line of an export: of a body that is no UTF-8 there is ``bodyBase64`` instead of ``body``."""

    properties: dict[str, str]
    body: str | None
    body_base64: str | None


def dead_letters_view(snapshot: Snapshot) -> DeadLetters:
    """Those first that gave up on something last."""
    rows: dict[str, DeadLetterGroup] = {}
    for look in snapshot.speakers():
        for group, count in look.tables.dead_letters.items():
            known = rows.get(group)
            last_ms = max(count.last_ms, 0 if known is None else known.last_ms)
            rows[group] = DeadLetterGroup(
                group=group,
                kept_count=count.kept_count + (0 if known is None else known.kept_count),
                total_count=count.total_count + (0 if known is None else known.total_count),
                last_ms=last_ms,
                brokers=[*([] if known is None else known.brokers), look.name],
                level=Level.WARN if snapshot.taken_ms - last_ms < _RECENT_MS else Level.GOOD,
            )
    found = sorted(rows.values(), key=lambda row: (-row.last_ms, row.group))
    return DeadLetters(taken_ms=snapshot.taken_ms, groups=found)


def exported(message: ReceivedMessage) -> ExportedMessage:
    row = {name: getattr(message_row(message), name) for name in MessageRow.__struct_fields__}
    try:
        text, packed = message.body.decode(), None
    except UnicodeDecodeError:
        text, packed = None, base64.b64encode(message.body).decode()
    return ExportedMessage(**row, properties=message.properties, body=text, body_base64=packed)


def json_line(message: ReceivedMessage) -> bytes:
    return msgspec.json.encode(exported(message)) + b"\n"


def json_cut(reason: str) -> bytes:
    """The last line of an export that does not hold all."""
    return msgspec.json.encode({"isCut": True, "reason": reason}) + b"\n"


def csv_cut(reason: str) -> bytes:
    return _csv_line([f"# cut: {reason}"])


def csv_head() -> bytes:
    return _csv_line([field.encode_name for field in msgspec.structs.fields(ExportedMessage)])


def csv_line(message: ReceivedMessage) -> bytes:
    """One row. A cell that a spreadsheet would take for a formula is quoted with an apostrophe."""
    row = exported(message)
    return _csv_line([_cell(getattr(row, name)) for name in ExportedMessage.__struct_fields__])


def _cell(value: object) -> str:
    match value:
        case None:
            text = ""
        case list() | dict():
            text = msgspec.json.encode(value).decode()
        case _:
            text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA_STARTS) else text


def _csv_line(cells: Sequence[str]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file).writerow(cells)
    return file.getvalue().encode()
