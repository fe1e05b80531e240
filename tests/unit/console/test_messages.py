"""Messages, dead letters and the picture of a topic, as pages and exports show them."""

import asyncio
import csv
import io
import re
from collections.abc import AsyncGenerator, Callable
from typing import cast

import msgspec
import pytest

from tanist.admin.message_search import ALWAYS, TimeSpan
from tanist.client.received import ReceivedMessage
from tanist.client.session.wire import Wire
from tanist.console import message_desk
from tanist.console.change_desk import ChangeDesk
from tanist.console.errors import BadRequest, Partly, Refused, Unknown
from tanist.console.message_desk import MessageDesk
from tanist.console.views.dead_letters import csv_head, csv_line, dead_letters_view, json_line
from tanist.console.views.messages import SHOWN_BODY_BYTES, body_view, message_page, messages_view
from tanist.console.views.topic_picture import topic_picture
from tanist.console.watching.lookups import Lookups
from tanist.console.watching.snapshot import DeadLetterCount, Place
from tanist.errors import MQError, RequestTimeout, ResponseError
from tanist.protocol import Command
from tests.support.clocks import FakeClock
from tests.support.console_views import CONSUMERS, NOW_MS, TOPIC, master, slave, snapshot, tables
from tests.support.console_web import Answer, Browser, PlayedConsole
from tests.support.found_message import received
from tests.support.slave_consume_views import PlayedWire


def desk() -> MessageDesk:
    clock = FakeClock(now_ms=NOW_MS)
    return MessageDesk(cast("Wire", PlayedWire()), Lookups(clock), clock)


def test_a_body_is_shown_as_text_if_it_is_text_and_else_in_hex() -> None:
    assert body_view(b"") == msgspec.structs.replace(body_view(b""), kind="empty", text="")
    text = body_view("paid ä\n".encode())
    assert (text.kind, text.text, text.is_cut) == ("text", "paid ä\n", False)
    for body in (b"\xff\xfe", b"a\x00b", "\u202e".encode()):
        assert body_view(body).kind == "hex"
    assert body_view(b"ab\x00").text == "00000000  61 62 00                                         ab."


def test_a_long_body_is_cut_and_not_within_a_character() -> None:
    view = body_view("ä".encode() * SHOWN_BODY_BYTES)
    assert (view.kind, view.is_cut, view.size_bytes) == ("text", True, 2 * SHOWN_BODY_BYTES)
    odd = body_view(b"a" + "ä".encode() * SHOWN_BODY_BYTES)
    assert (odd.kind, odd.is_cut) == ("text", True)
    assert len(body_view(b"\xff" * SHOWN_BODY_BYTES * 2).text) < 10 * SHOWN_BODY_BYTES


def test_what_a_search_found_comes_by_time_and_is_cut() -> None:
    messages = [received(TOPIC, b"", stored_ms=at, UNIQ_KEY=f"id{at}") for at in (3, 1, 2)]
    view = messages_view(messages, {"broker-b": "away"}, max_count=2)
    assert [row.message_id for row in view.messages] == ["id1", "id2"]
    assert (view.is_cut, view.failures) == (True, ["broker-b: away"])


def test_a_message_that_came_again_tells_where_it_was_sent() -> None:
    page = message_page(received("%DLQ%billing", b"x", RETRY_TOPIC=TOPIC), [])
    assert (page.message.topic, page.message.origin_topic) == ("%DLQ%billing", TOPIC)
    assert page.store_host == "10.0.0.1:10911"


@pytest.mark.parametrize(
    ("begin", "end", "span"),
    [
        ("", "", TimeSpan(NOW_MS - 3_600_000, NOW_MS)),
        ("-2h", "-1h", TimeSpan(NOW_MS - 7_200_000, NOW_MS - 3_600_000)),
        ("0", "1970-01-01T00:00:02", TimeSpan(0, 2_000)),
    ],
)
def test_a_time_is_a_span_back_or_one_of_utc(begin: str, end: str, span: TimeSpan) -> None:
    assert desk().span(begin, end) == span


@pytest.mark.parametrize(("begin", "end"), [("soon", ""), ("-1h", "-2h"), ("9" * 19, "")])
def test_a_time_that_makes_no_sense_is_refused(begin: str, end: str) -> None:
    with pytest.raises(BadRequest):
        desk().span(begin, end)


def test_a_key_is_looked_for_at_any_time_unless_one_is_given() -> None:
    query = desk().query(topic=" t ", message_id="", key="k", begin="", end="")
    assert (query.topic, query.span) == ("t", ALWAYS)
    with pytest.raises(BadRequest):
        desk().query(topic="x" * 256, message_id="", key="", begin="", end="")


def test_nobody_is_asked_whom_an_id_names_and_the_cluster_does_not_know() -> None:
    with pytest.raises(Unknown, match="no message 7F0"):
        asyncio.run(desk().page(snapshot(), "7F0000010000303900000000000000FF"))
    with pytest.raises(Unknown, match="no id of a place"):
        asyncio.run(desk().page(snapshot(), "../etc"))


def test_resending_nothing_or_too_much_is_refused() -> None:
    for ids in ([], ["a"] * 1001):
        with pytest.raises(Refused):
            asyncio.run(desk().resend(snapshot(), CONSUMERS, ids))


class _HalfWire(PlayedWire):
    """Answers one of these after the other."""

    def __init__(self, *answers: MQError | None) -> None:
        super().__init__()
        self._answers = iter(answers)

    async def ask(self, address: str, command: Command, *, timeout_s: float | None = None) -> Command:
        del address, timeout_s
        if (error := next(self._answers)) is not None:
            raise error
        return command.reply()


_NO = ResponseError(1, "no")


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ((None, _NO), Partly),
        ((_NO, _NO), Refused),
        ((_NO, RequestTimeout("10.0.0.1:10911", 36, 3.0)), Partly),
    ],
)
def test_what_was_changed_in_part_is_not_told_as_nothing_changed(
    answers: tuple[MQError | None, ...], kind: type[MQError], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(now_ms=NOW_MS)
    monkeypatch.setattr(MessageDesk, "walk_dead_letters", letters(2))
    of_messages = MessageDesk(cast("Wire", _HalfWire(*answers)), Lookups(clock), clock)
    with pytest.raises(kind):
        asyncio.run(of_messages.resend_range(snapshot(), CONSUMERS, ALWAYS))
    other = master(place=Place(address="10.0.0.3:10911", name="broker-b", broker_id=0, cluster="c"))
    of_topics = ChangeDesk(cast("Wire", _HalfWire(*answers)), clock)
    made = of_topics.update_topic(
        snapshot(master(), other), "new", broker_names=(), queue_count=1, permission="RW", is_ordered=False
    )
    with pytest.raises(kind):
        asyncio.run(made)


def letters(count: int) -> Callable[..., AsyncGenerator[ReceivedMessage]]:
    async def walk(*_: object) -> AsyncGenerator[ReceivedMessage]:
        for number in range(count):
            yield received(f"%DLQ%{CONSUMERS}", b"a", queue_offset=number)

    return walk


@pytest.mark.parametrize(
    ("form", "count", "line_count", "is_cut"),
    [("jsonl", 3, 3, False), ("jsonl", 4, 4, True), ("csv", 3, 4, False), ("csv", 4, 5, True)],
)
def test_an_export_ends_at_its_bound_and_says_so(
    form: str, count: int, line_count: int, is_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MessageDesk, "walk_dead_letters", letters(count))
    monkeypatch.setattr(message_desk, "MAX_EXPORTED", 3)

    async def visit(browser: Browser) -> Answer:
        await browser.log_in()
        return await browser.get(f"/dead-letters/{CONSUMERS}/export?format={form}")

    lines = PlayedConsole(snapshot()).run(visit).text.splitlines()
    assert len(lines) == line_count
    assert lines[-1].startswith(('{"isCut":true', "# cut", '"# cut')) is is_cut


def test_a_third_export_waits_until_one_of_two_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessageDesk, "walk_dead_letters", letters(2))

    async def run() -> None:
        of_messages = desk()
        first, second, third = (
            of_messages.export_dead_letters(snapshot(), CONSUMERS, ALWAYS) for _ in range(3)
        )
        await anext(first)
        await anext(second)
        waiting = asyncio.ensure_future(anext(third))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        await first.aclose()
        assert await waiting is not None
        await second.aclose()
        await third.aclose()

    asyncio.run(run())


def test_dead_letters_are_counted_over_all_brokers() -> None:
    count = DeadLetterCount(kept_count=2, total_count=5, last_ms=NOW_MS - 1_000)
    seen = snapshot(master(tables=tables(dead_letters={CONSUMERS: count})), slave())
    (row,) = dead_letters_view(seen).groups
    assert (row.group, row.kept_count, row.total_count, row.level) == (CONSUMERS, 2, 5, "warn")


def test_an_export_has_a_line_a_message_and_runs_nothing_in_a_spreadsheet() -> None:
    plain, binary = received(TOPIC, b"=HYPERLINK(1)", KEYS="a b"), received(TOPIC, b"\xff")
    line = msgspec.json.decode(json_line(plain))
    assert (line["body"], line["bodyBase64"], line["keys"]) == ("=HYPERLINK(1)", None, ["a", "b"])
    text = (csv_head() + csv_line(plain) + csv_line(binary)).decode()
    first, second = csv.DictReader(io.StringIO(text))
    assert (first["body"], second["bodyBase64"]) == ("'=HYPERLINK(1)", "/w==")


def test_a_picture_of_a_topic_is_made_of_escaped_names_and_leads_to_groups() -> None:
    drawn = topic_picture(["<b>"], 'T"<', [f"g{number}" for number in range(14)])
    assert "<b>" not in drawn
    assert 'T"<' not in drawn
    assert drawn.count('<a href="/groups/g') == 11
    assert "and 3 more" in drawn
    assert "style=" not in drawn
    assert len(re.findall("<rect", drawn)) == 1 + 1 + 12
    assert topic_picture([], "T", []).count("<rect") == 1
