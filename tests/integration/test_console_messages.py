"""Messages, dead letters, topics and settings through the console, beside a real broker and a consumer."""

import asyncio
import csv
import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from tanist.admin.cluster import broker_config
from tanist.client import Consumer, Message, Producer, Start
from tanist.client.session.wire import Wire
from tanist.protocol import Command, RequestCode
from tanist.protocol.headers.send import ConsumerSendBackRequest
from tanist.protocol.message_id import decode_offset_id
from tanist.testing import EmbeddedBroker
from tests.support.conditions import until, until_found
from tests.support.console_live import LiveConsole, live_console
from tests.support.console_web import Browser

TOPIC, GROUP = "OrderTopic", "billing"


def test_messages_dead_letters_topics_and_settings_from_the_console(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_story(tmp_path), 60))


async def _story(folder: Path) -> None:
    async with (
        EmbeddedBroker(topics={TOPIC: 2}) as broker,
        Producer(group="shop", namesrv=broker.namesrv) as producer,
        _consuming(broker.namesrv) as got,
        live_console(broker.namesrv, folder) as console,
    ):
        receipt = await producer.send(Message(TOPIC, b"paid \xc3\xa4", tags="paid", keys=["o-17", "o-18"]))
        other = await producer.send(Message(TOPIC, b"\x00\xff", keys=["o-19"]))
        await until(lambda: len(got) == 2)
        browser = console.browser
        await _finds_messages(browser, receipt.message_id, receipt.offset_id)
        page = (await browser.get(f"/messages/{other.offset_id}")).words
        assert "which are no text" in page
        assert "00000000 00 ff" in page

        await _give_up(console.desk.wire, broker.address, receipt.offset_id)
        await _give_up(console.desk.wire, broker.address, other.offset_id)
        await _resends_dead_letters(console, got)
        await _changes_topics(console, broker.address)
        # Consumers commit every few seconds.
        await _knows_who_consumed(browser, receipt.offset_id)
        await _shows_who_broadcasts(browser, broker.namesrv, folder)


async def _shows_who_broadcasts(browser: Browser, name_server: str, folder: Path) -> None:
    """A group that keeps its offsets to itself is shown with its topic while it is online."""
    screens = Consumer(
        group="screens", namesrv=name_server, topics={TOPIC: "*"}, broadcasting=True, offsets_dir=folder
    )

    async def is_shown() -> bool:
        return "screens" in (await browser.get(f"/api/v1/topics/{TOPIC}")).json["groups"]

    assert not await is_shown()
    async with screens:
        await until_found(is_shown, True)
        assert 'href="/groups/screens"' in (await browser.get(f"/topics/{TOPIC}")).text


async def _finds_messages(browser: Browser, message_id: str, offset_id: str) -> None:
    async def found(query: str) -> list[str]:
        answer = await browser.get(f"/api/v1/messages?{query}")
        assert answer.status == 200, answer.text
        return [message["messageId"] for message in answer.json["messages"]]

    # The index is written behind the message.
    await until_found(lambda: found(f"topic={TOPIC}&key=o-18"), [message_id])
    assert await found(f"id={offset_id}") == [message_id]
    assert await found(f"id={message_id}&topic={TOPIC}") == [message_id]
    assert await found(f"topic={TOPIC}&key=o-20") == []
    assert len(await found(f"topic={TOPIC}&begin=-1h")) == 2
    assert await found(f"topic={TOPIC}&begin=-2h&end=-1h") == []
    assert (await browser.get(f"/api/v1/messages?topic={TOPIC}&begin=soon")).status == 400
    assert (await browser.get("/api/v1/messages?topic=Nope&key=a")).status == 404
    assert (await browser.get("/api/v1/messages/7F0000010000303900000000000000FF")).status == 404
    listed = (await browser.get(f"/messages?topic={TOPIC}&begin=-1h")).words
    assert message_id in listed


async def _knows_who_consumed(browser: Browser, offset_id: str) -> None:
    async def standing() -> Any:
        page = (await browser.get(f"/api/v1/messages/{offset_id}")).json
        assert (page["body"]["text"], page["properties"]["KEYS"]) == ("paid ä", "o-17 o-18")
        return [(track["group"], track["standing"], track["isOnline"]) for track in page["tracks"]]

    await until_found(standing, [(GROUP, "CONSUMED", True)])


async def _resends_dead_letters(console: LiveConsole, got: list[bytes]) -> None:
    browser = console.browser
    csrf = await browser.csrf()
    page = f"/dead-letters/{GROUP}"

    async def ids() -> list[str]:
        console.desk.watcher.look_soon()
        found = (await browser.get(f"/api/v1{page}")).json["found"]["messages"]
        return [message["offsetId"] for message in found]

    async def count() -> int:
        return len(await ids())

    await until_found(count, 2)
    assert f"{GROUP} 2 2" in (await browser.get("/dead-letters")).words
    lines = (await browser.get(f"{page}/export")).text.splitlines()
    assert [msgspec.json.decode(line)["body"] for line in lines] == ["paid ä", None]
    rows = list(csv.DictReader(io.StringIO((await browser.get(f"{page}/export?format=csv")).text)))
    assert [row["bodyBase64"] for row in rows] == ["", "AP8="]
    assert (await browser.get(f"{page}/export?format=xml")).status == 400

    first = (await ids())[0]
    await browser.post(f"{page}/resend", {"csrf": csrf, "ids": first})
    assert f"1 of 1 dead letters go to {GROUP} again" in (await browser.get(page)).words
    await until(lambda: got.count("paid ä".encode()) == 2)
    await browser.post(f"{page}/resend", {"csrf": csrf, "confirm": "another"})
    assert f"Not done: type {GROUP}" in (await browser.get(page)).words
    await browser.post(f"{page}/resend", {"csrf": csrf, "confirm": GROUP})
    await until(lambda: got.count(b"\x00\xff") == 2 and got.count("paid ä".encode()) == 3)
    refused = await browser.post_json(
        f"/api/v1{page}/resend", {"ids": ["7F0000010000303900000000000000FF"]}, x_csrf_token=csrf
    )
    assert refused.status == 404


async def _changes_topics(console: LiveConsole, address: str) -> None:
    browser = console.browser
    csrf = await browser.csrf()
    made = await browser.post("/topics", {"csrf": csrf, "topic": "NewTopic", "queues": "3"})
    assert made.status == 303
    assert "NewTopic has 3 queues on embedded" in (await browser.get("/topics")).words

    async def queues() -> int:
        answer = await browser.get("/api/v1/topics/NewTopic")
        return len(answer.json["queues"]) if answer.status == 200 else 0

    await until_found(queues, 3)
    await browser.post("/topics", {"csrf": csrf, "topic": "NewTopic", "queues": "4"})
    assert "Not done: type NewTopic" in (await browser.get("/topics")).words
    await browser.post("/topics/NewTopic/send", {"csrf": csrf, "body": "hello", "tags": "t", "keys": "k"})
    topic = (await browser.get("/topics/NewTopic")).words
    assert "SEND_OK" in topic
    assert "shop" in topic
    sent = (await browser.get("/api/v1/messages?topic=NewTopic&begin=-1h")).json["messages"]
    assert [(message["tags"], message["keys"]) for message in sent] == [("t", ["k"])]
    await browser.post("/topics/NewTopic/delete", {"csrf": csrf, "confirm": "NewTopic"})
    await until_found(queues, 0)

    settings = f"/brokers/{address}/settings"
    await browser.post(settings, {"csrf": csrf, "key": "maxMsgsNumBatch", "value": "65"})
    assert (await broker_config(console.desk.wire, address))["maxMsgsNumBatch"] == "65"
    for form in (
        {"key": "listenPort", "value": "1"},
        {"key": "maxMsgsNumBatch", "value": "many"},
        {"key": "brokerPermission", "value": "2"},
    ):
        await browser.post(settings, {"csrf": csrf, **form})
        assert "Not done" in (await browser.get(f"/brokers/{address}")).words
    assert (await broker_config(console.desk.wire, address))["brokerPermission"] == "6"
    done = [entry.action for entry in console.desk.audit.last if entry.outcome == "done"]
    assert done[:4] == ["change setting", "delete topic", "send test message", "update topic"]


@asynccontextmanager
async def _consuming(name_server: str) -> AsyncGenerator[list[bytes]]:
    """What a group gets, while the block lasts."""
    got: list[bytes] = []
    consumer = Consumer(group=GROUP, namesrv=name_server, topics={TOPIC: "*"}, start=Start.FIRST)

    async def consume() -> None:
        async for message in consumer:
            got.append(message.body)  # noqa: PERF401 - others look at the list meanwhile.

    async with consumer, asyncio.TaskGroup() as tasks:
        consuming = tasks.create_task(consume())
        yield got
        consuming.cancel()


async def _give_up(wire: Wire, address: str, offset_id: str) -> None:
    """Make a message a dead letter, as a consumer does that wants it never again."""
    header = ConsumerSendBackRequest(
        log_offset=decode_offset_id(offset_id).log_offset, group=GROUP, delay_level=-1, origin_topic=TOPIC
    )
    await wire.ask(address, Command.request(RequestCode.CONSUMER_SEND_MSG_BACK, header))
