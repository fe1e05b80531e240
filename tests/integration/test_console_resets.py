"""A group is moved from the console: planned, looked at, applied, confirmed by its client, taken back."""

import asyncio
from pathlib import Path

from tanist.client import Consumer, Message, Producer, Start
from tanist.console.desk import Desk
from tanist.testing import EmbeddedBroker
from tests.support.console_live import live_console
from tests.support.console_web import Browser

TOPIC, GROUP, COUNT = "OrderTopic", "billing", 10


def test_a_group_is_moved_from_the_console_and_back(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_story(tmp_path), 120))


async def _story(folder: Path) -> None:
    async with (
        EmbeddedBroker(topics={TOPIC: 1}) as broker,
        Producer(group="shop", namesrv=broker.namesrv) as producer,
        Consumer(group=GROUP, namesrv=broker.namesrv, topics={TOPIC: "*"}, start=Start.FIRST) as consumer,
    ):
        for number in range(COUNT):
            await producer.send(Message(TOPIC, b"%d" % number))
        got: list[bytes] = []
        moved = asyncio.Event()

        async def consume() -> None:
            async for message in consumer:
                got.append(message.body)
                if len(got) == 2 * COUNT:
                    moved.set()

        async with asyncio.TaskGroup() as tasks, live_console(broker.namesrv, folder) as (desk, browser):
            consuming = tasks.create_task(consume())
            await _move(browser, await _plan(browser), moved, desk)
            consuming.cancel()


async def _plan(browser: Browser) -> str:
    """A plan that is made when the group has committed all that it consumed, as it does every few seconds."""
    form = {"csrf": await browser.csrf(), "group": GROUP, "topic": TOPIC, "target": "earliest"}
    while True:
        answer = await browser.post("/resets", form)
        plan = answer.headers["location"].rpartition("/")[2]
        # Until the group has said where it stands it is refused.
        if plan != "resets" and (await browser.get(f"/api/v1/resets/{plan}")).json["replayed"] == COUNT:
            return plan
        await asyncio.sleep(0.05)


async def _move(browser: Browser, plan: str, moved: asyncio.Event, desk: Desk) -> None:
    csrf = await browser.csrf()
    page = f"/resets/{plan}"
    preview = await browser.get(page)
    assert f"{GROUP} in {TOPIC} to earliest" in preview.words
    assert "Nothing is changed yet" in preview.words

    await browser.post(f"{page}/apply", {"csrf": csrf, "confirm": "another"})
    assert "Not done: type billing" in (await browser.get(page)).words
    await browser.post(f"{page}/apply", {"csrf": csrf, "confirm": GROUP})
    await moved.wait()
    after = await browser.get(page)
    assert "1 of 1 client confirmed" in after.words

    back = await browser.post(f"{page}/undo", {"csrf": csrf})
    assert back.headers["location"].startswith("/resets/")
    undo = (await browser.get(f"/api/v1{back.headers['location']}")).json
    assert (undo["undoes"], undo["queues"][0]["target"]) == (plan, COUNT)
    assert [entry.action for entry in desk.audit.last if entry.outcome == "done"][:2] == [
        "plan undo",
        "apply reset",
    ]
    listed = (await browser.get("/resets")).words
    assert "applied" in listed
    refused = await browser.post_json(
        "/api/v1/resets", {"group": GROUP, "topic": TOPIC, "target": "plan=/etc/passwd"}, x_csrf_token=csrf
    )
    assert refused.status == 409
    assert (await browser.get("/resets/..%2f..%2fetc")).status == 404
    assert (await browser.get("/api/v1/resets/20261118-090000-abcdef")).status == 404
