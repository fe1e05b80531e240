"""A group is moved from the console: planned, looked at, applied, confirmed by its client, taken back."""

import asyncio
import secrets
from pathlib import Path

from tanist.admin.asking import asking
from tanist.client import Consumer, Message, Producer, Start
from tanist.clock import SystemClock
from tanist.console.access.audit import AuditLog
from tanist.console.access.login_limit import LoginLimit
from tanist.console.access.passwords import hash_password
from tanist.console.access.sessions import SessionStore
from tanist.console.access.users import Role, User, Users
from tanist.console.desk import Desk
from tanist.console.reset_desk import ResetDesk
from tanist.console.views.digests import digests
from tanist.console.watching.gathering import Gatherer
from tanist.console.watching.lookups import Lookups
from tanist.console.watching.watcher import Watcher
from tanist.console.web.app import make_app
from tanist.testing import EmbeddedBroker
from tests.support.console_web import OPERATOR, PASSWORD, Browser

TOPIC, GROUP, COUNT = "OrderTopic", "billing", 10


def test_a_group_is_moved_from_the_console_and_back(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_story(tmp_path), 120))


async def _story(folder: Path) -> None:
    clock = SystemClock()
    async with EmbeddedBroker(topics={TOPIC: 1}) as broker, asking() as wire:
        user = User(OPERATOR, Role.OPERATOR, hash_password(PASSWORD, bytes(16), cost=2))
        watcher = Watcher(Gatherer(wire, [broker.namesrv], clock).look, digests, clock)
        lookups = Lookups(clock)
        desk = Desk(
            wire=wire,
            watcher=watcher,
            lookups=lookups,
            users=Users(user),
            sessions=SessionStore(secrets.token_urlsafe),
            limit=LoginLimit(),
            audit=AuditLog(),
            resets=ResetDesk(wire, folder, clock, lookups),
            clock=clock,
        )
        async with (
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

            async with asyncio.TaskGroup() as tasks, watcher.watching():
                consuming = tasks.create_task(consume())
                browser = Browser(make_app(desk))
                await browser.log_in()
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
