"""A group is moved from the console: planned, looked at, applied, confirmed by its client, taken back."""

import asyncio
from pathlib import Path

from tanist.client import Consumer, Message, Producer, Start
from tanist.console.desk import Desk
from tanist.console.web.app import make_app
from tanist.testing import EmbeddedBroker
from tests.support.console_live import SECOND_OPERATOR, live_console
from tests.support.console_web import OPERATOR, Browser

TOPIC, GROUP, COUNT = "OrderTopic", "billing", 10


def test_a_group_is_moved_from_the_console_and_back(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_story(tmp_path), 120))


def test_a_move_that_needs_approval_waits_for_another_operator(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_story(tmp_path, needs_approval=True), 120))


async def _story(folder: Path, *, needs_approval: bool = False) -> None:
    settings = {"resetNeedsApproval": "true"} if needs_approval else {}
    async with (
        EmbeddedBroker(topics={TOPIC: 1}, settings=settings) as broker,
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
            plan = await _plan(browser)
            if needs_approval:
                await _approve(browser, plan, moved, desk)
            else:
                await _move(browser, plan, moved, desk)
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


async def _approve(browser: Browser, plan: str, moved: asyncio.Event, desk: Desk) -> None:
    """Who gave the order can not let it be done; another can, by the button of the page."""
    page, form = f"/resets/{plan}", {"csrf": await browser.csrf(), "confirm": GROUP}
    await browser.post(f"{page}/apply", form)
    assert "waits until somebody else approves" in (await browser.get(page)).words
    decide = f"/resets/orders/{plan}/approve"
    await browser.post(decide, form)
    assert "somebody else has to decide about it" in (await browser.get("/resets")).words
    assert (await browser.get(f"/api/v1{page}")).json["sentence"].startswith("waits until somebody else")
    assert not moved.is_set()

    second = Browser(make_app(desk))
    await second.log_in(SECOND_OPERATOR)
    csrf = await second.csrf()
    for typed in ({}, {"confirm": "another"}):
        await second.post(decide, {"csrf": csrf, **typed})
        assert not moved.is_set()
    told = (await second.get("/resets")).words
    assert f"Type {GROUP} to say that you mean it" in told
    assert f"Not done: type {GROUP} to say that you mean it; nothing was changed" in told
    refused = await second.post_json(f"/api/v1{decide}", {"confirm": "another"}, x_csrf_token=csrf)
    assert refused.status == 409
    unknown = decide.replace(plan, "20261118-090000-abcdef")
    answer = await second.post_json(f"/api/v1{unknown}", {"confirm": GROUP}, x_csrf_token=csrf)
    assert (answer.status, "no order" in answer.text) == (409, True)
    assert not moved.is_set()
    await second.post(decide, {"csrf": csrf, "confirm": GROUP})
    await moved.wait()
    assert "1 of 1 client confirmed" in (await browser.get(page)).words
    decided = [entry for entry in desk.audit.last if entry.action == "approve reset"]
    assert [entry.user for entry in decided if entry.outcome == "done"] == [SECOND_OPERATOR]
    assert OPERATOR in {entry.user for entry in decided}


async def _move(browser: Browser, plan: str, moved: asyncio.Event, desk: Desk) -> None:
    csrf = await browser.csrf()
    page = f"/resets/{plan}"
    preview = await browser.get(page)
    assert f"{GROUP} in {TOPIC} to earliest" in preview.words
    assert "Nothing is changed yet" in preview.words
    assert 'data-view="groups resets"' in preview.text

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
