"""What the console shows of a plan to move a group, and of what became of it."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from tanist.admin.resets.checking import Checked, CheckedQueue
from tanist.admin.resets.judging import Verdict
from tanist.admin.resets.plan import Plan, PlannedClient, PlannedQueue
from tanist.admin.resets.plan_file import write_plan
from tanist.client.session.wire import Wire
from tanist.console import reset_desk
from tanist.console.reset_desk import ResetDesk
from tanist.console.views.resets import reset_page, resets_view
from tanist.console.watching.lookups import Lookups
from tanist.protocol.bodies.reset import ClientReceipt, ReceiptState, ResetOrderView, ResetState
from tests.support.clocks import FakeClock
from tests.support.slave_consume_views import PlayedWire

QUEUE = PlannedQueue(broker_name="broker-a", queue_id=0, now=90, min_offset=0, max_offset=100, target=40)
PLAN = Plan(
    plan_id="20261118-090000-abcdef",
    created_ms=1,
    created_by="ann",
    name_server="10.0.0.9:9876",
    clusters=["pairs"],
    brokers=["broker-a"],
    topic="OrderTopic",
    group="billing",
    target="-2h",
    queues=[QUEUE],
    clients=[PlannedClient(client_id="c-1", address="10.0.0.7", language="JAVA", version="5.3.3")],
    warnings=["the group is consumed in order"],
)


def order(state: ResetState, receipt: ReceiptState = ReceiptState.TOLD) -> ResetOrderView:
    return ResetOrderView(
        order_id=PLAN.plan_id,
        topic="OrderTopic",
        group="billing",
        broker_name="broker-a",
        state=state,
        caller="ann",
        caller_address="10.0.0.1",
        created_ms=5,
        receipts=[ClientReceipt(client_id="c-1", state=receipt, told_ms=6)],
    )


def checked(found: ResetOrderView | None, *, now: int = 90, verdict: Verdict = Verdict.NOT_MOVED) -> Checked:
    return Checked(PLAN, [CheckedQueue(QUEUE, 90, now, verdict)], {"broker-a": found}, frozenset())


def test_a_plan_says_what_it_would_do_before_anything_is_changed() -> None:
    page = reset_page(PLAN, checked(None), is_journaled=False)
    assert (page.is_begun, page.is_moved, page.replayed, page.skipped) == (False, False, 50, 0)
    assert page.sentence == "nothing is changed yet"
    assert page.warnings == ["the group is consumed in order"]
    assert [(row.planned_from, row.now, row.target, row.verdict) for row in page.queues] == [(90, 90, 40, "")]


def test_a_plan_whose_group_has_moved_says_so() -> None:
    page = reset_page(PLAN, checked(None, now=95), is_journaled=False)
    assert page.is_moved
    assert "plan anew" in page.sentence


def test_a_plan_that_was_applied_shows_its_receipts_and_claims_no_more_than_was_seen() -> None:
    told = reset_page(PLAN, checked(order(ResetState.APPLIED), now=40), is_journaled=False)
    assert told.is_begun
    assert "0 of 1 client confirmed, missing: c-1" in told.sentence
    assert [(each.client_id, each.state) for each in told.receipts] == [("c-1", ReceiptState.TOLD)]
    confirmed = order(ResetState.APPLIED, ReceiptState.CONFIRMED)
    done = reset_page(PLAN, checked(confirmed, now=40, verdict=Verdict.AT_TARGET), is_journaled=False)
    assert done.sentence == ("done: every client that there is was seen to follow; 1 of 1 client confirmed")


def test_a_plan_that_was_undone_since_names_the_order_that_did() -> None:
    confirmed = order(ResetState.APPLIED, ReceiptState.CONFIRMED)
    found = checked(confirmed, verdict=Verdict.AMBIGUOUS)
    found.later["broker-a"] = replace(confirmed, order_id="undo-1", undoes=PLAN.plan_id)
    page = reset_page(PLAN, found, is_journaled=False)
    assert page.sentence.startswith("applied, and since then undone or superseded by undo-1")


def test_an_order_that_waits_says_that_nothing_is_changed() -> None:
    page = reset_page(PLAN, checked(order(ResetState.WAITING)), is_journaled=False)
    assert "waits until somebody else approves" in page.sentence
    assert page.states == {"broker-a": ResetState.WAITING}


def test_a_plan_of_which_nobody_can_say_how_it_stands_says_why() -> None:
    page = reset_page(PLAN, "no route", is_journaled=True)
    assert (page.failure, page.is_begun, page.queues[0].now) == ("no route", True, None)


def test_orders_are_listed_the_newest_first_with_who_confirmed() -> None:
    first, second = order(ResetState.APPLIED, ReceiptState.CONFIRMED), order(ResetState.WAITING)
    view = resets_view([first, second], {"broker-b": "refused"}, ["a", "b"])
    assert [(row.state, row.confirmed_count, row.client_count) for row in view.orders] == [
        (ResetState.WAITING, 0, 1),
        (ResetState.APPLIED, 1, 1),
    ]
    assert (view.failures, view.plans) == ({"broker-b": "refused"}, ["b", "a"])


def test_a_plan_is_checked_once_for_all_who_look_and_anew_after_a_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = 0

    async def check(*_: object) -> Checked:
        nonlocal checks
        checks += 1
        return checked(None)

    async def nothing(*_: object, **__: object) -> list[ResetOrderView]:
        return []

    def all_there(*_: object) -> None:
        pass

    monkeypatch.setattr(reset_desk, "check_plan", check)
    monkeypatch.setattr(reset_desk, "find_places", nothing)
    monkeypatch.setattr(reset_desk, "decide_everywhere", nothing)
    monkeypatch.setattr(reset_desk, "check_places", all_there)
    write_plan(tmp_path / f"{PLAN.plan_id}.json", PLAN)

    async def scenario() -> list[int]:
        clock, counts = FakeClock(), list[int]()
        desk = ResetDesk(cast("Wire", PlayedWire()), tmp_path, clock, Lookups(clock))
        for _ in range(2):
            await desk.page(PLAN.plan_id, name_server="n:1")
            counts.append(checks)
        await desk.decide(PLAN.plan_id, name_server="n:1", decider="vic", is_approved=True, reason="")
        await desk.page(PLAN.plan_id, name_server="n:1")
        return [*counts, checks]

    assert asyncio.run(scenario()) == [1, 1, 2]
