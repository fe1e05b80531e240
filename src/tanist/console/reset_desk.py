"""Resets that users of the console plan and apply: plans in a folder, the rest as ``tanist admin`` does."""

import re
from datetime import UTC
from pathlib import Path

from tanist.admin.resets.applying import Applying, How, check_places
from tanist.admin.resets.checking import Checked, check_plan
from tanist.admin.resets.deciding import all_orders, decide_everywhere
from tanist.admin.resets.journal import Journal, journal_path
from tanist.admin.resets.places import find_places
from tanist.admin.resets.plan import Plan
from tanist.admin.resets.plan_file import read_plan, write_plan
from tanist.admin.resets.planning import Wish, make_plan
from tanist.admin.resets.progress import Outcome
from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.targets import LikePlan, read_target
from tanist.admin.resets.undoing import make_undo
from tanist.client.session.wire import Wire
from tanist.clock import Clock
from tanist.console.views.resets import ResetPage, Resets, reset_page, resets_view
from tanist.console.watching.lookups import Lookups
from tanist.errors import MQError
from tanist.protocol.bodies.reset import ResetOrderView

_PLAN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_WAIT_S = 3.0
"""A page does not wait for receipts as a command does: it shows them as they come."""
_DONE_WORDS = {
    Outcome.DONE: "applied, and every client was seen to follow",
    Outcome.UNCONFIRMED: "applied; not every client was seen to follow yet",
    Outcome.WAITING: "waits until somebody else approves",
}


class NoPlan(MQError):
    """This console has no such plan."""


class ResetDesk:
    """The plans of one console."""

    def __init__(self, wire: Wire, folder: Path, clock: Clock, lookups: Lookups) -> None:
        self._wire = wire
        self._folder = folder
        self._clock = clock
        self._lookups = lookups
        self._changes = 0
        """How often somebody changed something, here or elsewhere: what was looked up before is old then."""
        self._orders: list[ResetOrderView] = []
        """As they were listed last."""

    async def plan(
        self, name_server: str, *, group: str, topic: str, target: str, caller: str, reason: str
    ) -> Plan:
        """Make a plan and keep it; nothing is changed. Raises ResetRefused for one that makes no sense."""
        now_ms = self._clock.now_ms()
        words = target.split()
        aimed = read_target(words, now_ms=now_ms, zone=UTC)
        if isinstance(aimed, LikePlan):
            # It would be a file of this machine, which is not its users' to read.
            raise ResetRefused("plan=FILE is for tanist admin; here a plan is taken from the list")
        wish = Wish(
            name_server=name_server,
            topic=topic,
            group=group,
            target=aimed,
            words=target,
            caller=caller,
            now_ms=now_ms,
            reason=reason,
        )
        plan = await make_plan(self._wire, wish)
        write_plan(self._path(plan.plan_id), plan)
        return plan

    async def apply(self, plan_id: str, *, name_server: str, caller: str, reason: str) -> str:
        """Move the group as planned if it still stands where it did; what came of it, in words.

        Raises ResetRefused if it does not, or somebody rejected it.
        """
        plan = self.find(plan_id)
        places = await find_places(self._wire, name_server, plan.topic)
        check_places(plan, places)
        how = How(caller=caller, reason=reason or plan.reason, wait_s=_WAIT_S)
        applying = Applying(
            self._wire, plan, places, journal=self._journal(plan), how=how, on_change=lambda _progress: None
        )
        try:
            progress = await applying.run()
        finally:
            self._changes += 1
        words = _DONE_WORDS.get(progress.outcome)
        if words is None:
            parts = progress.brokers.values()
            failures = [each.failure for each in parts if each.failure]
            failures += [f"since then {each.later[-1].order_id} was applied" for each in parts if each.later]
            changed = f"{progress.done_count} of {len(plan.queues)} queues are changed"
            raise ResetRefused("; ".join([f"{progress.outcome.name.lower()}: {changed}", *failures]))
        return f"{plan.group} in {plan.topic}: {words}"

    async def undo(self, plan_id: str, *, name_server: str, caller: str) -> Plan:
        """The plan back, to be looked at and applied like any other."""
        plan = self.find(plan_id)
        places = await find_places(self._wire, name_server, plan.topic)
        check_places(plan, places)
        back = await make_undo(
            self._wire, plan, places, self._journal(plan), caller=caller, now_ms=self._clock.now_ms()
        )
        write_plan(self._path(back.plan_id), back)
        return back

    async def group_of(self, order_id: str, *, name_server: str) -> str:
        """The group that an order moves. Raises ResetRefused if no broker knows the order."""
        listed = await all_orders(self._wire, name_server, order_id=order_id)
        if not listed.orders:
            unheard = "".join(f"; {name} does not answer: {why}" for name, why in listed.failures.items())
            raise ResetRefused(f"no order {order_id} is known{unheard}")
        return listed.orders[0].group

    async def decide(
        self, order_id: str, *, name_server: str, decider: str, is_approved: bool, reason: str
    ) -> str:
        """Approve or reject an order that waits. The brokers refuse who gave it."""
        try:
            orders = await decide_everywhere(
                self._wire, name_server, order_id, decider=decider, is_approved=is_approved, reason=reason
            )
        finally:
            self._changes += 1
        states = ", ".join(f"{order.broker_name}: {order.state.value.lower()}" for order in orders)
        return f"order {order_id} is {'approved' if is_approved else 'rejected'} ({states})"

    async def page(self, plan_id: str, *, name_server: str) -> ResetPage:
        plan = self.find(plan_id)
        journal = self._journal(plan)
        # Before the check, which makes an empty entry for each broker that it looks up.
        is_journaled = journal.has_begun
        checked: Checked | str
        try:
            checked = await self._lookups.find(
                ("plan", name_server, plan_id, str(self._changes)),
                lambda: self._check(plan, journal, name_server),
            )
        except MQError as error:
            checked = str(error)
        return reset_page(plan, checked, is_journaled=is_journaled)

    async def _check(self, plan: Plan, journal: Journal, name_server: str) -> Checked:
        places = await find_places(self._wire, name_server, plan.topic)
        check_places(plan, places)
        return await check_plan(self._wire, plan, places, journal)

    async def list(self, *, name_server: str) -> Resets:
        listed = await self._lookups.find(
            ("orders", name_server, str(self._changes)), lambda: all_orders(self._wire, name_server)
        )
        if listed.orders != self._orders:
            self._orders = listed.orders
            self._changes += 1
        plans = [path.stem for path in self._folder.glob("*.json") if _PLAN_ID.fullmatch(path.stem)]
        failures = {name: str(error) for name, error in listed.failures.items()}
        return resets_view(listed.orders, failures, plans)

    def find(self, plan_id: str) -> Plan:
        """Raises NoPlan if there is none of this name."""
        if not _PLAN_ID.fullmatch(plan_id) or not self._path(plan_id).exists():
            raise NoPlan(f"this console has no plan {plan_id}")
        return read_plan(self._path(plan_id))

    def _journal(self, plan: Plan) -> Journal:
        return Journal(journal_path(self._path(plan.plan_id)), plan)

    def _path(self, plan_id: str) -> Path:
        return self._folder / f"{plan_id}.json"
