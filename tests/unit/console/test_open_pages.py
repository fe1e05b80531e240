"""Pages whose data is in no look at the cluster: who has one open is told when it shows something else."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from msgspec.structs import replace

from tanist.admin.resets.deciding import Listed
from tanist.console import desk as desks
from tanist.console import reset_desk
from tanist.console.access.audit import AuditEntry
from tanist.console.desk import Desk
from tanist.console.views.digests import digests
from tanist.console.watching.lookups import KEPT_S
from tanist.console.watching.snapshot import DeadLetterCount, Snapshot
from tanist.protocol.bodies.reset import ClientReceipt, ReceiptState, ResetOrderView, ResetState
from tanist.up.control import ClusterState, MemberState, OrderFailed
from tests.support.console_views import CONSUMERS, master, slave, snapshot, tables
from tests.support.console_web import Answer, Browser, PlayedConsole

ORDER = ResetOrderView(
    order_id="20261118-090000-abcdef",
    topic="OrderTopic",
    group=CONSUMERS,
    broker_name="broker-a",
    state=ResetState.APPLIED,
    caller="ann",
    caller_address="10.0.0.1",
    created_ms=5,
    receipts=[ClientReceipt(client_id="c-1", state=ReceiptState.TOLD, told_ms=6)],
)


async def next_digest(desk: Desk, view: str, change: Callable[[], object]) -> tuple[str, str]:
    """How a page looked while it lay open, and how it does after a change."""
    async with asyncio.timeout(20), aclosing(desk.watcher.changes(heartbeat_s=1, views=[view])) as changes:
        first = None
        desk.watcher.look_soon()
        async for told in changes:
            digest = (told or {}).get(view)
            if first is None and digest is not None:
                first = digest
                change()
                desk.watcher.look_soon()
            elif first is not None and digest not in (None, first):
                return first, str(digest)
    raise AssertionError


def moves(console: PlayedConsole, view: str, change: Callable[[], object]) -> None:
    """Fails if who has the view open is not told of a change, or is of one that is none."""

    async def visit(_browser: Browser) -> None:
        assert view not in console.desk.watcher.digests
        first, second = await next_digest(console.desk, view, change)
        assert first != second
        assert not console.desk.watcher.is_open(view)

    console.run(visit)


def test_who_looks_at_the_audit_log_is_told_of_an_entry() -> None:
    console = PlayedConsole(snapshot())
    entry = AuditEntry(at_ms=1, user="ann", address="a", action="log in", subject="", outcome="done")
    moves(console, "audit", lambda: console.audit.write(entry))


def test_who_looks_at_certificates_is_told_of_a_file() -> None:
    console = PlayedConsole(snapshot())
    moves(console, "certificates", lambda: (console.results / "audit.json").write_text("{}"))


def test_who_looks_at_this_machine_is_told_of_a_process_that_died(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    member = MemberState(name="demo-orders", state="runs", pid=7, address="", log_file="", is_master=False)
    members = [member]

    async def give_order(_home: Path, order: object) -> ClusterState:
        if not members:
            raise OrderFailed(f"no cluster takes {order}")
        return ClusterState(mode="fixed-roles", home="", members=list(members))

    def die() -> None:
        members[0] = replace(member, state="ended")

    monkeypatch.setattr(desks, "give_order", give_order)
    moves(PlayedConsole(snapshot(), control=tmp_path), "machine", die)
    # That it does not answer any more is news too, and nothing that ends the watch.
    moves(PlayedConsole(snapshot(), control=tmp_path), "machine", members.clear)


@pytest.mark.parametrize(
    "later",
    [
        [replace(ORDER, receipts=[replace(ORDER.receipts[0], state=ReceiptState.CONFIRMED)])],
        [ORDER, replace(ORDER, order_id="20261118-090001-abcdef", state=ResetState.WAITING)],
    ],
    ids=["a receipt", "an order that waits"],
)
def test_who_looks_at_resets_or_a_plan_is_told(
    later: list[ResetOrderView], monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = [ORDER]

    async def all_orders(*_given: object) -> Listed:
        return Listed(list(orders), {}, {})

    console = PlayedConsole(snapshot())

    def change() -> None:
        orders[:] = later
        console.clock.advance_ms(round(KEPT_S * 1000))

    monkeypatch.setattr(reset_desk, "all_orders", all_orders)
    moves(console, "resets", change)


def with_dead_letters(total: int) -> Snapshot:
    found = DeadLetterCount(kept_count=total, total_count=total, last_ms=5)
    return snapshot(master(tables=tables(dead_letters={CONSUMERS: found})), slave())


def test_who_looks_at_the_dead_letters_of_a_group_is_told_of_one_more() -> None:
    first, second = (digests(with_dead_letters(total))["dead-letters"] for total in (1, 2))
    assert first != second


@pytest.mark.parametrize(
    ("page", "views"),
    [
        ("/audit", "audit"),
        ("/certificates", "certificates"),
        (f"/dead-letters/{CONSUMERS}", "dead-letters"),
        ("/resets", "resets"),
    ],
)
def test_a_page_says_which_views_it_shows(page: str, views: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def all_orders(*_given: object) -> Listed:
        return Listed([ORDER], {}, {})

    monkeypatch.setattr(reset_desk, "all_orders", all_orders)

    async def visit(browser: Browser) -> Answer:
        await browser.log_in()
        return await browser.get(page)

    assert f'data-view="{views}"' in PlayedConsole(snapshot()).run(visit).text
