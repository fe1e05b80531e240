"""``tanist admin resetOffset`` against brokers that are played: what is asked, changed and shown."""

import asyncio
import errno
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tanist.admin.resets.journal import Journal
from tanist.admin.resets.plan_file import PlanEdited
from tanist.admin.resets.progress import Outcome
from tanist.admin.resets.refused import ResetRefused
from tanist.cli.exit_codes import Exit
from tanist.cli.main import tanist
from tanist.errors import ConnectFailed
from tanist.model.groups import MessageModel
from tanist.protocol.bodies.reset import ReceiptState, ResetState
from tanist.protocol.codes import RequestCode
from tanist.protocol.headers.reset import ApplyResetRequest, ResetOffsetRequest
from tanist.protocol.response_errors import NoPermission
from tests.support.played_resets import (
    GROUP,
    NAME_SERVER,
    T0,
    TOPIC,
    PlayedBroker,
    PlayedClient,
    PlayedQueue,
    PlayedSite,
)


class Operator:
    """Runs the command line in a folder of its own, against brokers that are played."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._monkeypatch = monkeypatch
        self.plan_file = folder / "plan.json"
        monkeypatch.setenv("NAMESRV_ADDR", NAME_SERVER)
        monkeypatch.chdir(folder)

    def meets(self, *brokers: PlayedBroker, cluster: str = "DefaultCluster") -> PlayedSite:
        site = PlayedSite(*brokers, cluster=cluster)

        @asynccontextmanager
        async def asking(_credentials: object) -> AsyncGenerator[PlayedSite]:
            yield site

        self._monkeypatch.setattr("tanist.cli.asked.asking", asking)
        return site

    def runs(self, command: str, *arguments: str, answer: str | None = None) -> Result:
        words = ["admin", "resetOffset", command, *arguments]
        return CliRunner().invoke(tanist, words, input=answer)

    def plans(self, *targets: str, options: tuple[str, ...] = ()) -> Result:
        to = [word for target in targets for word in ("--to", target)]
        return self.runs("plan", "-g", GROUP, "-t", TOPIC, *to, "-o", str(self.plan_file), *options)

    def planned(self, *targets: str) -> dict[str, Any]:
        result = self.plans(*targets, options=("--json",))
        assert result.exit_code == 0, result.output or result.exception
        return json.loads(result.stdout)

    def applies(self, *options: str) -> Result:
        return self.runs("apply", str(self.plan_file), "--yes", *options)

    def refused(self, *targets: str) -> str:
        result = self.plans(*targets)
        assert isinstance(result.exception, ResetRefused), result.output
        return str(result.exception)


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Operator:
    return Operator(monkeypatch, tmp_path)


def pair(**other: Any) -> tuple[PlayedBroker, PlayedBroker]:
    """Two brokers with two queues each, of 100 messages, at 70 of which the group stands."""

    def one(name: str) -> PlayedBroker:
        queues = {0: PlayedQueue(end=100, now=70), 1: PlayedQueue(end=100, now=70)}
        given: dict[str, Any] = {"clients": [PlayedClient("c-1"), PlayedClient("c-2")]} | other
        return PlayedBroker(name, queues, **given)

    return one("broker-a"), one("broker-b")


def smaller_pair() -> list[PlayedBroker]:
    return [PlayedBroker(name, {0: PlayedQueue(end=100, now=70)}) for name in ("broker-a", "broker-b")]


def stands(*brokers: PlayedBroker) -> list[int | None]:
    return [queue.now for broker in brokers for queue in broker.queues.values()]


# plan


@pytest.mark.parametrize(
    ("target", "offset"),
    [
        ("earliest", 0),
        ("latest", 100),
        ("now", 100),
        ("lag=10", 90),
        ("offset=55", 55),
        (str(T0 + 40_000), 40),
        ("2023-11-14T22:14:00Z", 40),
    ],
)
def test_a_plan_says_where_each_queue_would_go(operator: Operator, target: str, offset: int) -> None:
    brokers = pair()
    operator.meets(*brokers)
    plan = operator.planned(target)
    assert {queue["target"] for queue in plan["queues"]} == {offset}
    assert plan["replayed"] == 4 * max(0, 70 - offset)
    assert plan["skipped"] == 4 * max(0, offset - 70)
    assert [client["clientId"] for client in plan["clients"]] == ["c-1", "c-2"]
    assert plan["brokers"] == ["broker-a", "broker-b"]
    assert stands(*brokers) == [70] * 4


def test_a_plan_is_shown_with_its_warnings_and_the_next_command(operator: Operator) -> None:
    broker_a, broker_b = pair()
    broker_a.is_orderly, broker_b.retry_count = True, 3
    operator.meets(broker_a, broker_b)
    shown = operator.plans("offset=60").stdout
    assert "4 queues at 2 brokers: 40 messages to come again, 0 to be skipped" in shown
    assert "warning: the group consumes in order" in shown
    assert "warning: 3 messages wait in the retry topic of billing" in shown
    assert f"resetOffset apply {operator.plan_file}" in shown.replace("\n", "")


def test_queues_can_be_chosen_and_have_offsets_of_their_own(operator: Operator) -> None:
    operator.meets(*pair())
    plan = operator.planned("broker-b:1=9", "broker-a:0=8")
    assert [(row["brokerName"], row["queueId"], row["target"]) for row in plan["queues"]] == [
        ("broker-a", 0, 8),
        ("broker-b", 1, 9),
    ]
    result = operator.plans("earliest", options=("-q", "broker-a:1", "--json"))
    assert [row["queueId"] for row in json.loads(result.stdout)["queues"]] == [1]


def test_a_saved_plan_can_be_the_target_of_another(operator: Operator) -> None:
    operator.meets(*pair())
    operator.plans("broker-b:1=9")
    again = operator.planned(f"plan={operator.plan_file}")
    assert [(row["brokerName"], row["queueId"], row["target"]) for row in again["queues"]] == [
        ("broker-b", 1, 9)
    ]


def test_where_clients_of_a_broadcasting_group_stand_they_say_themselves(operator: Operator) -> None:
    queues = {0: PlayedQueue(end=100)}
    clients = [
        PlayedClient("c-1", stands={0: 40}),
        PlayedClient("c-2", stands={0: 90}, language="JAVA", version=407),
    ]
    operator.meets(PlayedBroker("broker-a", queues, clients, MessageModel.BROADCASTING))
    plan = operator.planned("offset=50")
    (queue,) = plan["queues"]
    assert (queue["stands"], queue["replayed"], queue["skipped"]) == ({"c-1": 40, "c-2": 90}, 40, 10)
    assert plan["model"] == "BROADCASTING"
    assert any("c-2: can not move in broadcasting mode" in text for text in plan["allWarnings"])


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (["offset=101"], "past its end 100"),
        (["broker-c:0=1"], "no queue broker-c:0"),
        (["offset=-3"], "can not be"),
        (["2100-01-01"], "in the future"),
        (["group=nobody"], "group nobody has no offset"),
        (["key=nothing"], "has a message with the key 'nothing'"),
        (["message=nothing"], "has a message nothing"),
        (["message=7F0000010000000000000000000000FF"], "has a message 7F"),
    ],
)
def test_what_can_not_be_planned_is_refused(operator: Operator, targets: list[str], words: str) -> None:
    operator.meets(*pair())
    assert words in operator.refused(*targets)
    assert not operator.plan_file.exists()


def test_an_unknown_topic_group_and_queue_have_their_own_answers(operator: Operator) -> None:
    broker_a, broker_b = pair(clients=[])
    for queue in (*broker_a.queues.values(), *broker_b.queues.values()):
        queue.now = None
    site = operator.meets(broker_a, broker_b)
    unknown_queue = operator.plans("earliest", options=("-q", "broker-a:9"))
    assert "has no queue broker-a:9; it has broker-a:0" in str(unknown_queue.exception)
    no_queue = operator.plans("earliest", options=("-q", "seven"))
    assert "is no queue; use BROKER:QUEUE" in str(no_queue.exception)
    assert "in 4 of 4 queues the group has no offset yet" in operator.plans("earliest").stdout
    site.groups.clear()
    assert "knows a group billing" in operator.refused("earliest")
    unknown_topic = operator.runs("plan", "-g", GROUP, "-t", "Nowhere", "--to", "earliest")
    assert "knows no topic Nowhere" in str(unknown_topic.exception)


def test_a_plan_that_was_applied_and_what_is_no_plan_are_not_written_over(operator: Operator) -> None:
    operator.meets(*pair())
    operator.plans("earliest")
    assert operator.plans("latest").exit_code == 0
    operator.applies()
    assert "was applied, and undo needs it" in operator.refused("earliest")
    operator.plan_file.write_text("dear diary")
    assert "is no plan" in operator.refused("earliest")


def test_without_a_name_server_nobody_is_asked(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR")
    assert operator.plans("earliest").exit_code == 2


# preview


def test_a_preview_tells_whether_the_group_has_moved(operator: Operator) -> None:
    broker_a, broker_b = pair()
    operator.meets(broker_a, broker_b)
    operator.plans("earliest")
    assert operator.runs("preview", str(operator.plan_file)).exit_code == 0
    broker_b.queues[1].now = 71
    result = operator.runs("preview", str(operator.plan_file))
    assert result.exit_code == Outcome.MOVED
    assert "at 71" in result.stdout


# apply


@pytest.mark.behaviour("S4-50")
def test_an_apply_moves_all_brokers_and_tells_who_confirmed(operator: Operator) -> None:
    brokers = pair()
    operator.meets(*brokers)
    operator.plans("earliest")
    result = operator.applies("--user", "ann", "--reason", "a bug")
    assert result.exit_code == 0, result.output
    assert stands(*brokers) == [0] * 4
    assert "4 of 4 queues are changed\n2 of 2 clients confirmed" in result.stdout
    (order,) = brokers[0].orders
    assert (order.caller, order.reason, order.before) == ("ann", "a bug", {0: 70, 1: 70})


def test_an_operator_is_asked_first(operator: Operator) -> None:
    brokers = pair()
    operator.meets(*brokers)
    operator.plans("earliest")
    asked = operator.runs("apply", str(operator.plan_file), answer="n\n")
    assert asked.exit_code == 1
    assert "280 messages to come again" in asked.output
    assert stands(*brokers) == [70] * 4
    assert operator.runs("apply", str(operator.plan_file), answer="y\n").exit_code == 0
    assert stands(*brokers) == [0] * 4


@pytest.mark.parametrize(
    ("client", "words"),
    [
        (PlayedClient("c-2", ReceiptState.TOLD), "c-2 (told, not seen to follow yet)"),
        (PlayedClient("c-2", ReceiptState.FAILED, "its disk is full"), "c-2 (failed: its disk is full)"),
        (
            PlayedClient("c-2", ReceiptState.PENDING, is_online=False),
            "c-2 (not connected, is told when it comes)",
        ),
    ],
)
@pytest.mark.behaviour("S4-50")
def test_a_client_that_hangs_or_refuses_or_is_away_is_named(
    operator: Operator, client: PlayedClient, words: str
) -> None:
    operator.meets(*pair(clients=[PlayedClient("c-1"), client]))
    operator.plans("earliest")
    result = operator.applies("--wait", "0.05")
    assert result.exit_code == Outcome.UNCONFIRMED
    assert f"1 of 2 clients confirmed, missing: {words}" in result.stdout


def test_a_receipt_that_comes_late_is_waited_for_without_asking_again_and_again(operator: Operator) -> None:
    broker, _ = pair(clients=[PlayedClient("c-1", ReceiptState.TOLD)])
    operator.meets(broker)
    broker.later.append(lambda: broker.confirm("c-1"))
    operator.plans("earliest")
    result = operator.applies()
    assert result.exit_code == 0, result.output
    # Whether it knows orders; by both names before and after; at once, and once until the change.
    assert broker.count(RequestCode.GET_RESET_ORDERS) == 1 + 2 + 2 + 2


def test_an_offline_group_is_moved_on_the_brokers(operator: Operator) -> None:
    brokers = pair(clients=[])
    operator.meets(*brokers)
    assert "nobody of the group is online" in operator.plans("latest").stdout
    result = operator.applies()
    assert (result.exit_code, stands(*brokers)) == (0, [100] * 4)
    assert "no client of the group is known" in result.stdout


def test_a_group_that_is_online_at_some_brokers_only_is_moved_at_all_of_them(operator: Operator) -> None:
    broker_a, broker_b = pair()
    broker_b.clients = []
    operator.meets(broker_a, broker_b)
    assert "online at broker-a and offline at broker-b" in operator.plans("earliest").stdout
    result = operator.applies()
    assert (result.exit_code, stands(broker_a, broker_b)) == (0, [0] * 4)
    assert "2 of 2 clients confirmed" in result.stdout


def test_an_order_is_given_in_the_name_of_the_account(operator: Operator) -> None:
    broker, _ = pair()
    operator.meets(broker)
    operator.plans("earliest")
    keys = ["--access-key", "ann-key", "--secret-key", "secret"]
    words = ["admin", *keys, "resetOffset", "apply", str(operator.plan_file), "--yes"]
    assert CliRunner().invoke(tanist, words).exit_code == 0
    assert broker.orders[0].caller == "ann-key"


def test_a_broadcasting_group_of_which_nobody_was_told_has_not_moved(operator: Operator) -> None:
    broker, _ = pair(model=MessageModel.BROADCASTING)
    operator.meets(broker)
    operator.plans("earliest")
    broker.clients.clear()
    assert operator.applies().exit_code == Outcome.UNCONFIRMED


def test_a_group_that_has_moved_stops_it_before_anything_is_changed(operator: Operator) -> None:
    broker_a, broker_b = pair()
    operator.meets(broker_a, broker_b)
    operator.plans("earliest")
    broker_b.queues[1].now = 75
    stopped = operator.applies()
    assert stopped.exit_code == Outcome.MOVED
    assert "broker-b:1 stands at 75, planned at 70" in stopped.stdout
    assert "nothing was changed; plan anew, or apply with --force" in stopped.stdout
    assert broker_a.count(RequestCode.APPLY_RESET) == 0
    assert operator.applies("--force").exit_code == 0
    assert stands(broker_a, broker_b) == [0] * 4


def test_a_group_that_moves_at_the_last_moment_is_left_by_its_broker(operator: Operator) -> None:
    broker_a, broker_b = pair()
    operator.meets(broker_a, broker_b)
    operator.plans("earliest")
    broker_b.before_apply = lambda: setattr(broker_b.queues[0], "now", 71)
    stopped = operator.applies()
    assert stopped.exit_code == Outcome.MOVED
    assert "broker-b:0 stands at 71, planned at 70" in stopped.stdout
    assert "2 of 4 queues are changed; plan anew, or apply with --force" in stopped.stdout
    assert stands(broker_a, broker_b) == [0, 0, 71, 70]
    broker_b.before_apply = None
    assert operator.applies("--force").exit_code == 0
    assert len(broker_a.orders) == 1
    assert stands(broker_a, broker_b) == [0] * 4


def test_two_resets_at_once_can_not_both_happen(operator: Operator) -> None:
    brokers = pair()
    operator.meets(*brokers)
    operator.plans("earliest")
    first = operator.plan_file
    operator.plan_file = first.with_name("other.json")
    operator.plans("latest")
    assert operator.applies().exit_code == 0
    operator.plan_file = first
    assert operator.applies().exit_code == Outcome.MOVED
    assert stands(*brokers) == [100] * 4


def test_the_same_command_again_goes_on_and_does_nothing_twice(operator: Operator) -> None:
    broker_a, broker_b = pair()
    operator.meets(broker_a, broker_b)
    operator.plans("earliest")

    def die() -> None:
        raise ConnectFailed(broker_b.address, "killed")

    broker_b.before_apply = die
    failed = operator.applies()
    assert failed.exit_code == Outcome.FAILED
    assert "broker-b: cannot connect to" in failed.stdout
    assert "2 of 4 queues are changed; the same command again goes on" in failed.stdout
    broker_b.before_apply = None
    broker_a.queues[0].now = 30
    assert operator.applies().exit_code == 0
    assert broker_a.count(RequestCode.APPLY_RESET) == 1
    assert stands(broker_a, broker_b) == [30, 0, 0, 0]


def fill_disk(monkeypatch: pytest.MonkeyPatch, *, after: int, broker_name: str) -> None:
    """Have no room for more than so many lines about a broker in the journal."""
    write, left = Journal.write, [after]

    def write_or_fail(self: Journal, name: str, **other: Any) -> None:
        if name == broker_name:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        write(self, name, **other)

    monkeypatch.setattr(Journal, "write", write_or_fail)


def test_a_full_disk_keeps_no_broker_from_its_part_and_what_is_changed_is_told(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_a, broker_b = pair()
    operator.meets(broker_a, broker_b)
    operator.plans("earliest")
    for broker in (broker_a, broker_b):
        broker.clients[1].does = ReceiptState.TOLD
        broker.later.append(partial(broker.confirm, "c-2"))
    with monkeypatch.context() as full:
        fill_disk(full, after=0, broker_name="broker-a")
        failed = operator.applies()
    assert failed.exit_code == Outcome.FAILED
    assert "broker-a: what is done can not be noted beside the plan: No space left on device" in failed.stdout
    assert "4 of 4 queues are changed; the same command again goes on" in failed.stdout
    # Both were watched to the end.
    assert not broker_a.later
    assert not broker_b.later
    assert stands(broker_a, broker_b) == [0] * 4
    assert operator.applies().exit_code == 0


def test_a_full_disk_at_a_stock_broker_ends_with_what_was_begun(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = {number: PlayedQueue(end=100, now=70) for number in range(100)}
    stock, other = PlayedBroker("broker-a", queues, knows_orders=False), pair(clients=[])[1]
    operator.meets(stock, other)
    operator.plans("earliest")
    with monkeypatch.context() as full:
        fill_disk(full, after=4, broker_name="broker-a")
        failed = operator.applies()
    assert failed.exit_code == Outcome.FAILED
    changed = sum(queue.now == 0 for queue in queues.values())
    assert 3 < changed < 100
    assert f"No space left on device; {changed} of 100 queues are changed there" in failed.stdout
    assert f"{changed + 2} of 102 queues are changed; the same command again goes on" in failed.stdout
    assert stands(other) == [0, 0]
    assert operator.applies().exit_code == 0
    assert stands(stock, other) == [0] * 102


def test_a_broker_that_is_not_there_ends_it_before_anything_is_changed(operator: Operator) -> None:
    broker_a, broker_b = pair()
    operator.meets(broker_a, broker_b)
    operator.plans("earliest")
    broker_b.is_up = False
    assert isinstance(operator.applies().exception, ConnectFailed)
    assert stands(broker_a) == [70, 70]


@pytest.mark.parametrize(
    ("brokers", "cluster", "words"),
    [
        (pair(), "Other", "for cluster DefaultCluster, and this is Other"),
        (pair()[:1], "DefaultCluster", "is at the brokers broker-a now"),
        (smaller_pair(), "DefaultCluster", "no queue broker-a:1 any more"),
    ],
)
def test_a_plan_for_other_brokers_is_refused(
    operator: Operator, brokers: Sequence[PlayedBroker], cluster: str, words: str
) -> None:
    operator.meets(*pair())
    operator.plans("earliest")
    operator.meets(*brokers, cluster=cluster)
    for command in ("preview", "apply", "verify", "undo"):
        options = ["--yes"] if command in ("apply", "undo") else []
        assert words in str(operator.runs(command, str(operator.plan_file), *options).exception)


def test_a_plan_edited_by_hand_is_refused_unless_it_is_meant(operator: Operator) -> None:
    brokers = pair()
    operator.meets(*brokers)
    operator.plans("earliest")
    edit(operator.plan_file, row=3, target=12)
    refused = operator.applies()
    assert isinstance(refused.exception, PlanEdited)
    assert "queue broker-b:1" in str(refused.exception)
    assert operator.applies("--accept-edited").exit_code == 0
    assert stands(*brokers) == [0, 0, 0, 12]


def edit(plan_file: Path, *, row: int, target: int) -> None:
    whole = json.loads(plan_file.read_text())
    whole["plan"]["queues"][row]["target"] = target
    plan_file.write_text(json.dumps(whole))


def test_a_plan_edited_after_it_was_applied_is_refused_even_if_it_is_meant(operator: Operator) -> None:
    brokers = pair()
    operator.meets(*brokers)
    plan = operator.planned("earliest")
    assert operator.applies().exit_code == 0
    edit(operator.plan_file, row=3, target=12)
    for options in ([], ["--force"]):
        refused = operator.applies("--accept-edited", *options)
        assert refused.exit_code == Outcome.FAILED
        assert isinstance(refused.exception, ResetRefused)
        assert f"broker-b knows order {plan['planId']} with other targets" in str(refused.exception)
        assert "make a new plan" in str(refused.exception)
    assert stands(*brokers) == [0] * 4


def test_a_plan_that_was_stopped_can_be_edited_and_forced(operator: Operator) -> None:
    broker, _ = pair()
    operator.meets(broker)
    operator.plans("earliest")
    broker.before_apply = lambda: setattr(broker.queues[0], "now", 71)
    assert operator.applies().exit_code == Outcome.MOVED
    edit(operator.plan_file, row=1, target=12)
    assert operator.applies("--accept-edited", "--force").exit_code == 0
    assert stands(broker) == [0, 12]


def test_scripts_get_all_of_it_as_json(operator: Operator) -> None:
    operator.meets(*pair())
    operator.plans("earliest")
    result = operator.applies("--json")
    told = json.loads(result.stdout)
    assert (told["outcome"], told["queuesChanged"], told["confirmed"]) == ("DONE", 4, ["c-1", "c-2"])
    assert told["brokers"]["broker-a"]["order"]["receipts"][0]["state"] == "CONFIRMED"


def test_a_plan_that_was_undone_since_is_not_said_to_hold(operator: Operator) -> None:
    brokers = pair()
    operator.meets(*brokers)
    operator.plans("earliest")
    operator.applies()
    assert operator.runs("undo", str(operator.plan_file), "--yes").exit_code == 0
    (undo,) = [order.order_id for order in brokers[0].orders if order.undoes]
    for options in ([], ["--force"]):
        again = operator.applies(*options)
        assert again.exit_code == Outcome.MOVED
        applied = "broker-b: applied at 2023-11-14T22:13:20.000+00:00"
        assert f"{applied}, since then undone by {undo}" in again.stdout
        assert "0 of 4 queues are as this plan set them, and nothing was changed now" in again.stdout
    told = json.loads(operator.applies("--json").stdout)
    assert (told["outcome"], told["queuesChanged"]) == ("MOVED", 0)
    assert told["brokers"]["broker-a"]["later"] == [undo]
    assert stands(*brokers) == [70] * 4
    # The way out.
    first = operator.plan_file
    operator.plan_file = first.with_name("again.json")
    operator.plans(f"plan={first}")
    assert operator.applies().exit_code == 0
    assert stands(*brokers) == [0] * 4


def test_a_plan_of_which_another_took_a_queue_over_says_by_which_and_how_much_is_left(
    operator: Operator,
) -> None:
    brokers = pair()
    operator.meets(*brokers)
    operator.plans("earliest")
    operator.applies()
    first = operator.plan_file
    operator.plan_file = first.with_name("other.json")
    other = operator.planned("broker-b:1=55")
    assert operator.applies().exit_code == 0
    assert operator.applies().exit_code == 0
    operator.plan_file = first
    again = operator.applies()
    assert again.exit_code == Outcome.MOVED
    assert f"since then superseded by {other['planId']}" in again.stdout
    assert "broker-a: applied" not in again.stdout
    assert "3 of 4 queues are as this plan set them" in again.stdout


# approval


@pytest.mark.behaviour("S4-32")
def test_an_order_waits_until_another_approves_it(operator: Operator) -> None:
    brokers = pair(needs_approval=True)
    operator.meets(*brokers)
    plan = operator.planned("latest")
    waiting = operator.applies("--user", "ann")
    assert waiting.exit_code == Outcome.WAITING
    assert f"resetOffset approve {plan['planId']}" in waiting.stdout
    assert stands(*brokers) == [70] * 4
    own = operator.runs("approve", plan["planId"], "--user", "ann")
    assert isinstance(own.exception, NoPermission)
    approved = operator.runs("approve", plan["planId"], "--user", "bob")
    assert approved.exit_code == 0, approved.output
    assert stands(*brokers) == [100] * 4
    again = operator.applies("--user", "ann")
    assert (again.exit_code, "2 of 2 clients confirmed" in again.stdout) == (0, True)


def test_a_rejected_order_changes_nothing_and_says_why(operator: Operator) -> None:
    brokers = pair(needs_approval=True)
    operator.meets(*brokers)
    plan = operator.planned("latest")
    operator.applies("--user", "ann")
    assert operator.runs("reject", plan["planId"], "--user", "bob", "--reason", "not today").exit_code == 0
    again = operator.applies("--user", "ann")
    assert again.exit_code == Outcome.REJECTED
    assert "REJECTED by bob: not today" in again.stdout
    unknown = operator.runs("approve", plan["planId"], "--user", "bob")
    assert "waits for approval (broker-a: REJECTED" in str(unknown.exception)
    assert "none is known" in str(operator.runs("approve", "nothing").exception)


# list


def test_all_orders_of_all_brokers_are_listed(operator: Operator) -> None:
    brokers = pair()
    operator.meets(*brokers)
    assert "no order is known" in operator.runs("list").stdout
    plan = operator.planned("earliest")
    operator.applies("--user", "ann")
    lines = operator.runs("list", "-g", GROUP).stdout.splitlines()
    assert [line.split()[1:3] for line in lines[1:]] == [
        [plan["planId"], "broker-a"],
        [plan["planId"], "broker-b"],
    ]
    assert "2 of 2" in lines[1]
    brokers[1].is_up = False
    partly = operator.runs("list", "--json")
    assert partly.exit_code == Exit.PARTLY
    assert len(json.loads(partly.stdout)["orders"]) == 1


# verify


def test_what_holds_is_verified_and_what_does_not_is_named(operator: Operator) -> None:
    broker_a, broker_b = pair()
    operator.meets(broker_a, broker_b)
    operator.plans("earliest")
    before = operator.runs("verify", str(operator.plan_file))
    assert before.exit_code == Outcome.FAILED
    assert "broker-a: there is no order of this plan" in before.stdout
    operator.applies()
    assert operator.runs("verify", str(operator.plan_file)).exit_code == 0
    broker_a.queues[0].now, broker_a.queues[1].now = 20, 70
    after = operator.runs("verify", str(operator.plan_file))
    assert after.exit_code == 0, after.stdout
    assert "went on from target" in after.stdout
    assert "consumed all of it again" in after.stdout


@pytest.mark.behaviour("S4-50")
def test_what_nobody_confirmed_does_not_hold(operator: Operator) -> None:
    operator.meets(*pair(clients=[PlayedClient("c-1", ReceiptState.TOLD)]))
    operator.plans("earliest")
    operator.applies("--wait", "0")
    result = operator.runs("verify", str(operator.plan_file), "--json")
    assert result.exit_code == Outcome.UNCONFIRMED
    assert json.loads(result.stdout)["missing"] == {"c-1": "told, not seen to follow yet"}


def test_what_was_undone_since_does_not_hold(operator: Operator) -> None:
    brokers = pair()
    operator.meets(*brokers)
    operator.plans("earliest")
    operator.applies()
    operator.runs("undo", str(operator.plan_file), "--yes")
    undo = brokers[0].orders[-1].order_id
    result = operator.runs("verify", str(operator.plan_file))
    assert result.exit_code == Outcome.MOVED
    assert f"since then undone by {undo}" in result.stdout
    assert "it can not be said that it holds" in result.stdout
    told = json.loads(operator.runs("verify", str(operator.plan_file), "--json").stdout)
    assert told["later"] == {"broker-a": undo, "broker-b": undo}


# undo


def test_an_undo_goes_back_to_where_the_group_stood(operator: Operator) -> None:
    broker_a, broker_b = pair()
    operator.meets(broker_a, broker_b)
    plan = operator.planned("latest")
    refused = operator.runs("undo", str(operator.plan_file), "--yes")
    assert "was applied that could be taken back" in str(refused.exception)
    operator.applies()
    undone = operator.runs("undo", str(operator.plan_file), "--yes", "--user", "ann")
    assert undone.exit_code == 0, undone.output
    assert stands(broker_a, broker_b) == [70] * 4
    assert broker_a.orders[-1].undoes == plan["planId"]
    # Again it is the same undo, and so nothing happens.
    assert operator.runs("undo", str(operator.plan_file), "--yes").exit_code == 0
    assert len(broker_a.orders) == 2
    # And it is a plan itself.
    back = operator.plan_file.with_name("plan.undo.json")
    assert operator.runs("verify", str(back)).exit_code == 0
    assert operator.runs("undo", str(back), "--yes").exit_code == 0
    assert stands(broker_a, broker_b) == [100] * 4


def test_an_undo_goes_to_where_a_client_was_and_not_only_to_what_it_had_committed(operator: Operator) -> None:
    broker, _ = pair(clients=[PlayedClient("c-1", stands={0: 78})])
    operator.meets(broker)
    operator.plans("earliest")
    operator.applies()
    assert operator.runs("undo", str(operator.plan_file), "--yes").exit_code == 0
    assert stands(broker) == [78, 70]


def test_an_undo_that_was_stopped_is_planned_anew(operator: Operator) -> None:
    broker, _ = pair()
    operator.meets(broker)
    operator.plans("latest")
    operator.applies()
    broker.before_apply = lambda: setattr(broker.queues[0], "now", 200)
    assert operator.runs("undo", str(operator.plan_file), "--yes").exit_code == Outcome.MOVED
    broker.before_apply = None
    assert operator.runs("undo", str(operator.plan_file), "--yes").exit_code == 0
    assert stands(broker) == [70, 70]


def test_clients_of_a_broadcasting_group_go_back_to_the_least_that_one_had(operator: Operator) -> None:
    clients = [PlayedClient("c-1", stands={0: 40}), PlayedClient("c-2", stands={0: 30})]
    broker = PlayedBroker("broker-a", {0: PlayedQueue(end=100)}, clients, MessageModel.BROADCASTING)
    operator.meets(broker)
    operator.plans("latest")
    operator.applies()
    undone = operator.runs("undo", str(operator.plan_file), answer="y\n")
    assert undone.exit_code == 0, undone.output
    assert "clients stood at different offsets" in undone.output
    assert broker.orders[-1].targets[0].target == 30


# brokers that know no orders


def test_an_offline_group_is_committed_at_a_stock_broker_queue_by_queue(operator: Operator) -> None:
    broker, _ = pair(clients=[], knows_orders=False)
    operator.meets(broker)
    operator.plans("offset=33")
    result = operator.applies()
    assert (result.exit_code, stands(broker)) == (0, [33, 33])
    assert "no Tanist broker, so no client's receipt can be had; queues: all seen there" in result.stdout
    assert operator.runs("verify", str(operator.plan_file)).exit_code == 0
    assert operator.runs("undo", str(operator.plan_file), "--yes").exit_code == 0
    assert stands(broker) == [70, 70]


def test_a_killed_apply_at_a_stock_broker_goes_on_with_the_queues_that_are_left(operator: Operator) -> None:
    queues = {number: PlayedQueue(end=100, now=70) for number in range(1_000)}
    broker = PlayedBroker("broker-a", queues, knows_orders=False)
    site = operator.meets(broker)
    operator.plans("earliest")
    ask, left = site.ask, [400]

    async def ask_until_killed(address: str, command: Any, **other: Any) -> Any:
        answer = await ask(address, command, **other)
        if command.code == RequestCode.UPDATE_CONSUMER_OFFSET:
            left[0] -= 1
            if left[0] == -1:
                # It is done, and nobody has noted it.
                raise KeyboardInterrupt
            if left[0] < -1:
                await asyncio.Event().wait()  # Nobody is there to have the answer.
        return answer

    site.ask = ask_until_killed
    assert operator.applies().exit_code != 0
    done = sum(queue.now == 0 for queue in queues.values())
    assert 400 < done < 1_000
    site.ask = ask
    broker.asked.clear()
    # Those that are done may have moved on meanwhile.
    next(queue for queue in queues.values() if queue.now == 0).now = 5
    result = operator.applies()
    assert result.exit_code == 0, result.output
    assert "1000 of 1000 queues are changed" in result.stdout
    assert broker.count(RequestCode.UPDATE_CONSUMER_OFFSET) <= 1_000 - 400
    assert {queue.now for queue in queues.values()} <= {0, 5}


@pytest.mark.behaviour("S4-4")
def test_clients_of_a_stock_broker_are_moved_to_a_time_in_one_order(operator: Operator) -> None:
    broker, _ = pair(knows_orders=False, clients=[PlayedClient("c-1", stands={0: 70, 1: 70})])
    operator.meets(broker)
    operator.plans(str(T0 + 20_000))
    result = operator.applies()
    assert (result.exit_code, stands(broker)) == (0, [20, 20])
    (sent,) = [each for each in broker.asked if each.code == RequestCode.INVOKE_BROKER_TO_RESET_OFFSET]
    header = sent.header(ResetOffsetRequest)
    assert (header.timestamp_ms, header.is_force, header.queue_id) == (T0 + 20_000, True, -1)


def test_a_stock_broker_that_keeps_resets_itself_is_told_each_queue(operator: Operator) -> None:
    clients = [PlayedClient("c-1", stands={0: 70, 1: 70})]
    broker, _ = pair(knows_orders=False, server_side=True, clients=clients)
    operator.meets(broker)
    operator.plans("offset=44")
    assert operator.applies().exit_code == 0
    assert (stands(broker), broker.count(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)) == ([44, 44], 2)


def test_what_a_stock_broker_can_not_do_exactly_is_refused(operator: Operator) -> None:
    broker, _ = pair(knows_orders=False)
    operator.meets(broker)
    operator.plans("offset=44")
    assert "can move clients that are online to a time only" in str(operator.applies().exception)
    operator.plans("latest")
    broker.queues[0].end = 105
    assert "would go to 105 in queue 0 and the plan says 100" in str(operator.applies().exception)
    broker.model = MessageModel.BROADCASTING
    operator.plans("earliest")
    assert "can not reset a broadcasting group" in str(operator.applies().exception)
    assert broker.count(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET) == 0


@pytest.mark.behaviour("S4-50")
def test_a_stock_brokers_clients_that_are_not_seen_to_move_are_told(operator: Operator) -> None:
    broker, _ = pair(
        knows_orders=False, clients=[PlayedClient("c-1", ReceiptState.TOLD, stands={0: 70, 1: 70})]
    )
    operator.meets(broker)
    operator.plans(str(T0 + 20_000))
    result = operator.applies("--wait", "0")
    assert result.exit_code == Outcome.UNCONFIRMED
    assert "2 of 2 not seen to have moved" in result.stdout
    # What the broker has written down as the group's offset is no sign that its client went there.
    assert stands(broker) == [20, 20]
    checked = operator.runs("verify", str(operator.plan_file))
    assert checked.exit_code == Outcome.UNCONFIRMED
    assert "where it was, or further" in checked.stdout


def test_a_client_that_stood_at_the_target_already_shows_nothing_by_standing_there(
    operator: Operator,
) -> None:
    broker, _ = pair(
        knows_orders=False, server_side=True, clients=[PlayedClient("c-1", stands={0: 90, 1: 90})]
    )
    operator.meets(broker)
    operator.plans("offset=90")
    assert operator.applies("--wait", "0").exit_code == Outcome.UNCONFIRMED


def test_orders_carry_what_was_planned(operator: Operator) -> None:
    broker, _ = pair()
    broker.queues[1].now = None
    operator.meets(broker)
    plan = operator.planned("latest")
    operator.applies("--user", "ann")
    (sent,) = [each for each in broker.asked if each.code == RequestCode.APPLY_RESET]
    header = sent.header(ApplyResetRequest)
    assert (header.order_id, header.caller, header.is_forced) == (plan["planId"], "ann", False)
    (order,) = broker.orders
    assert [(each.expected_offset, each.target) for each in order.targets] == [(70, 100), (None, 100)]
    assert order.state is ResetState.APPLIED


# mqadmin's own commands


@pytest.mark.behaviour("S4-2", "S4-3", "S4-4")
def test_every_broker_is_told_topic_group_time_and_force(operator: Operator) -> None:
    brokers = pair(knows_orders=False)
    operator.meets(*brokers)
    words = ["-g", GROUP, "-t", TOPIC, "-s", str(T0 + 30_000), "-f", "false"]
    result = CliRunner().invoke(tanist, ["admin", "resetOffsetByTime", *words])
    assert result.exit_code == 0, result.exception
    head, columns, *rows = result.stdout.splitlines()
    assert head == (
        f"rollback consumer offset by specified group[{GROUP}], topic[{TOPIC}], force[false], "
        f"timestamp(string)[{T0 + 30_000}], timestamp(long)[{T0 + 30_000}]"
    )
    assert columns.split() == ["#brokerName", "#queueId", "#offset"]
    assert [row.split() for row in rows] == [
        [name, queue_id, "30"] for name in ("broker-a", "broker-b") for queue_id in "01"
    ]
    for broker in brokers:
        (sent,) = [each for each in broker.asked if each.code == RequestCode.INVOKE_BROKER_TO_RESET_OFFSET]
        header = sent.header(ResetOffsetRequest)
        assert (header.topic, header.group) == (TOPIC, GROUP)
        assert (header.timestamp_ms, header.is_force) == (T0 + 30_000, False)


def test_a_backlog_is_skipped_at_each_broker_and_for_an_offline_group_too(operator: Operator) -> None:
    broker_a, broker_b = pair(knows_orders=False)
    broker_b.clients = []
    operator.meets(broker_a, broker_b)
    result = CliRunner().invoke(
        tanist, ["admin", "skipAccumulatedMessage", "-g", GROUP, "-t", TOPIC, "--json"]
    )
    assert result.exit_code == 0, result.exception
    assert {row["offset"] for row in json.loads(result.stdout)["offsets"]} == {100}
    assert stands(broker_a, broker_b) == [100] * 4
    (sent,) = [each for each in broker_a.asked if each.code == RequestCode.INVOKE_BROKER_TO_RESET_OFFSET]
    assert sent.header(ResetOffsetRequest).timestamp_ms == -1
    # mqadmin commits by itself where nobody is online.
    assert broker_b.count(RequestCode.UPDATE_CONSUMER_OFFSET) == 2


@pytest.mark.parametrize("timestamp", ["soon", "2100-01-01#00:00:00:000"])
def test_a_time_that_is_none_or_not_over_is_refused(operator: Operator, timestamp: str) -> None:
    operator.meets(*pair())
    words = ["admin", "resetOffsetByTime", "-g", GROUP, "-t", TOPIC, "-s", timestamp]
    assert isinstance(CliRunner().invoke(tanist, words).exception, ResetRefused)


def test_a_broker_that_fails_is_named_beside_those_that_did_it(operator: Operator) -> None:
    broker_a, broker_b = pair()
    operator.meets(broker_a, broker_b)
    broker_b.is_up = False
    result = CliRunner().invoke(tanist, ["admin", "resetOffsetByTime", "-g", GROUP, "-t", TOPIC, "-s", "now"])
    assert result.exit_code == Outcome.FAILED
    assert "broker-b: cannot connect" in result.stderr
    assert [row.split()[0] for row in result.stdout.splitlines()[2:]] == ["broker-a", "broker-a"]
