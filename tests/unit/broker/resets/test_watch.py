import itertools

import pytest

from tanist.broker.consumer_group import Client
from tanist.broker.resets import watch as watches
from tanist.broker.resets.actions import Action, AskStanding, NoteReceipt, TellClient, WakePulls
from tanist.broker.resets.moment import Moment
from tanist.broker.resets.receipts import BURST_MS, MAX_TELLS
from tanist.broker.resets.watch import PATIENCE_MS, PAUSE_MS, Commit, OrderWatch
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.reset import QueueReceipt, QueueReceipts, ReceiptState
from tests.support.fake_connection import FakeConnection

TARGETS = {0: 100, 1: 200}
START_MS = 1_000_000
LATE_MS = START_MS + PATIENCE_MS + 1


def _client(client_id: str = "c1", *, language: str = "JAVA", version: int = 479, port: int = 1) -> Client:
    return Client(FakeConnection(f"10.0.0.{client_id[-1]}:{port}"), client_id, language, version)


def _at(time_ms: int) -> Moment:
    """The steady clock is what counts; the other one is set now and then."""
    return Moment(time_ms % 1_000, time_ms)


class Story:
    """One order, and what clients do after it."""

    def __init__(
        self,
        *clients: Client,
        is_broadcast: bool = False,
        is_server_side: bool = False,
        is_active: bool = False,
        stood: frozenset[int] = frozenset(),
    ) -> None:
        self.watch = OrderWatch(
            order_id="o1",
            group="G",
            topic="T",
            targets=TARGETS,
            observable=frozenset(TARGETS),
            is_broadcast=is_broadcast,
            is_server_side=is_server_side,
            applied_at_ms=START_MS,
            judges_until_ms=START_MS + PATIENCE_MS,
            stood=stood,
        )
        self.now_ms = START_MS
        self.members = {client.connection: client for client in clients}
        self.began = self.watch.begin([(client, is_active) for client in clients], self.now)

    @property
    def now(self) -> Moment:
        return _at(self.now_ms)

    def commit(
        self,
        client: Client,
        offset: int,
        queue_id: int = 0,
        *,
        is_one_way: bool = True,
        says_who: bool = False,
    ) -> bool:
        """Whether the commit counts."""
        client_id = client.client_id if says_who else None
        commit = Commit(client.connection, queue_id, offset, is_one_way, client_id)
        counts, _ = self.watch.may_commit(commit, self.now, lambda: self.members.get(client.connection))
        return counts

    def pull(
        self, client: Client, asked: int, queue_id: int = 0, *, next_offset: int | None = None
    ) -> list[Action]:
        return self.watch.on_pull(
            client.connection,
            queue_id,
            asked,
            asked if next_offset is None else next_offset,
            now=self.now,
            find_member=lambda: self.members.get(client.connection),
        )

    def stands(self, client: Client, **places: int) -> list[Action]:
        offsets = {int(name[1:]): offset for name, offset in places.items()}
        return self.watch.on_standing(client.connection, offsets, self.now)

    def query(self, client: Client, queue_id: int = 0) -> None:
        self.watch.on_query(client.connection, queue_id, lambda: self.members.get(client.connection))

    def state(self, client: Client) -> ReceiptState:
        (receipt,) = [it for it in self.watch.receipts if it.client_id == client.client_id]
        return receipt.state

    def reason(self, client: Client) -> str:
        (receipt,) = [it for it in self.watch.receipts if it.client_id == client.client_id]
        return receipt.reason


# Receipts


def test_members_are_asked_where_they_stand_and_told() -> None:
    java, ours = _client("c1"), _client("c2", language="PYTHON")
    story = Story(java, ours, is_broadcast=True)
    watch = story.watch
    assert story.began == [AskStanding(watch, java), TellClient(watch, java), TellClient(watch, ours)]
    assert story.state(java) is ReceiptState.TOLD


@pytest.mark.behaviour("S4-50")
def test_a_client_has_confirmed_when_each_of_its_queues_was_seen_at_its_target() -> None:
    client = _client()
    story = Story(client)
    story.stands(client, q0=150, q1=150)
    story.commit(client, 100)
    assert story.state(client) is ReceiptState.TOLD
    story.pull(client, 200, queue_id=1)
    assert story.state(client) is ReceiptState.CONFIRMED
    (receipt,) = story.watch.receipts
    assert [(row.old_offset, row.new_offset) for row in receipt.view().queues] == [(150, 100), (150, 200)]


def test_a_client_without_a_queue_of_the_order_has_nothing_to_do() -> None:
    client = _client()
    story = Story(client)
    (note,) = story.stands(client, q7=3)
    assert isinstance(note, NoteReceipt)
    assert (story.state(client), story.reason(client)) == (
        ReceiptState.CONFIRMED,
        "it has none of the queues",
    )


def test_a_client_that_does_not_say_what_it_has_is_believed_what_it_was_seen_to_do_for_long_enough() -> None:
    client = _client(language="GO")
    story = Story(client)
    story.pull(client, 100)
    assert story.state(client) is ReceiptState.TOLD
    assert story.watch.on_tick(_at(LATE_MS))
    assert story.state(client) is ReceiptState.CONFIRMED


def test_a_client_that_does_nothing_stays_told() -> None:
    client = _client()
    story = Story(client)
    assert story.watch.on_tick(_at(LATE_MS * 2)) == []
    assert story.state(client) is ReceiptState.TOLD


@pytest.mark.parametrize("is_broadcast", [False, True])
def test_to_read_on_and_pass_the_target_is_no_move(is_broadcast: bool) -> None:
    client = _client()
    story = Story(client, is_broadcast=is_broadcast)
    story.pull(client, 90, next_offset=100)
    story.pull(client, 100, next_offset=110)
    (receipt,) = story.watch.receipts
    assert receipt.queues == {}


@pytest.mark.behaviour("S4-50")
def test_a_client_that_goes_on_elsewhere_has_failed_and_a_late_proof_counts_still() -> None:
    client = _client()
    story = Story(client)
    story.stands(client, q0=150)
    story.pull(client, 150, next_offset=160)
    assert story.state(client) is ReceiptState.TOLD
    story.now_ms = LATE_MS
    story.pull(client, 160, next_offset=170)
    assert story.state(client) is ReceiptState.FAILED
    assert story.reason(client) == "it goes on at 160 in queue 0, and not at 100"
    story.pull(client, 100, next_offset=110)
    assert story.state(client) is ReceiptState.CONFIRMED


@pytest.mark.behaviour("S4-30", "S4-50")
def test_in_broadcasting_each_client_has_to_be_seen_in_all_queues() -> None:
    first, second = _client("c1"), _client("c2")
    story = Story(first, second, is_broadcast=True)
    for queue_id, target in TARGETS.items():
        story.pull(first, target, queue_id=queue_id)
    story.pull(second, 100)
    assert (story.state(first), story.state(second)) == (ReceiptState.CONFIRMED, ReceiptState.TOLD)


@pytest.mark.parametrize(("version", "is_named"), [(407, True), (409, False), (433, True), (453, False)])
def test_versions_that_can_not_move_in_broadcasting_are_named_when_they_did_not(
    version: int, is_named: bool
) -> None:
    client = _client(version=version)
    story = Story(client, is_broadcast=True)
    story.pull(client, 5)
    story.now_ms = LATE_MS
    story.pull(client, 7)
    assert story.state(client) is ReceiptState.FAILED
    assert ("can not be moved in broadcasting" in story.reason(client)) is is_named


def test_consumers_that_pull_by_themselves_have_failed_and_are_not_told() -> None:
    client = _client()
    story = Story(client, is_active=True)
    assert [type(action) for action in story.began] == [NoteReceipt]
    assert "pulls by itself" in story.reason(client)


def test_a_client_of_ours_is_believed_what_it_says() -> None:
    good, bad, wrong = (_client(name, language="PYTHON") for name in ("c1", "c2", "c3"))
    story = Story(good, bad, wrong)
    moved = QueueReceipt(queue_id=0, old_offset=QueueOffset(150), new_offset=QueueOffset(100))
    story.watch.on_receipt(good, QueueReceipts(queues=[moved]), story.now)
    story.watch.on_receipt(bad, QueueReceipts(failure="no disk"), story.now)
    elsewhere = QueueReceipt(queue_id=0, new_offset=QueueOffset(101))
    story.watch.on_receipt(wrong, QueueReceipts(queues=[elsewhere]), story.now)
    assert story.state(good) is ReceiptState.CONFIRMED
    assert (story.state(bad), story.reason(bad)) == (ReceiptState.FAILED, "no disk")
    assert (story.state(wrong), story.reason(wrong)) == (
        ReceiptState.FAILED,
        "it went to 101 in queue 0, and not to 100",
    )


@pytest.mark.parametrize("is_broadcast", [False, True])
def test_a_client_of_ours_that_says_nothing_is_taken_at_what_it_did_when_it_had_time_to(
    is_broadcast: bool,
) -> None:
    client = _client(language="PYTHON")
    story = Story(client, is_broadcast=is_broadcast)
    story.stands(client, q0=150, q1=150)
    for queue_id, target in TARGETS.items():
        story.pull(client, target, queue_id=queue_id)
    assert story.watch.on_tick(_at(START_MS + PATIENCE_MS)) == []
    assert story.state(client) is ReceiptState.TOLD
    assert story.watch.on_tick(_at(LATE_MS))
    assert story.state(client) is ReceiptState.CONFIRMED


def test_a_receipt_may_come_once_more_with_the_first_message() -> None:
    client = _client(language="PYTHON")
    story = Story(client)
    moved = QueueReceipt(queue_id=0, new_offset=QueueOffset(100))
    first = QueueReceipt(queue_id=0, new_offset=QueueOffset(100), first_offset=QueueOffset(102))
    assert len(story.watch.on_receipt(client, QueueReceipts(queues=[moved]), _at(START_MS))) == 1
    assert story.watch.on_receipt(client, QueueReceipts(queues=[first]), _at(START_MS)) == []
    assert story.watch.receipts[0].queues[0].first_offset == 102


def test_a_queue_that_another_reads_from_its_target_is_no_longer_waited_for() -> None:
    before, after = _client("c1"), _client("c2")
    story = Story(before, after)
    story.stands(before, q0=150)
    story.stands(after, q1=150)
    story.query(after)
    story.pull(after, 100)
    assert story.state(before) is ReceiptState.CONFIRMED
    assert story.reason(before) == "its queues went to others, the last to c2"
    assert story.state(after) is ReceiptState.TOLD


def test_a_queue_that_a_newcomer_takes_over_at_its_target_is_no_longer_waited_for() -> None:
    client, newcomer = _client("c1"), _client("c2")
    story = Story(client)
    story.members[newcomer.connection] = newcomer
    story.stands(client, q0=150, q1=250)
    story.pull(newcomer, 200, queue_id=1)
    story.commit(client, 100)
    assert story.state(client) is ReceiptState.CONFIRMED


def test_what_somebody_does_who_is_no_member_takes_no_queue_over() -> None:
    client, operator = _client("c1"), _client("o9")
    story = Story(client)
    story.stands(client, q0=150)
    story.pull(operator, 100)
    story.commit(operator, 100, is_one_way=False)
    assert story.state(client) is ReceiptState.TOLD


@pytest.mark.parametrize("is_broadcast", [False, True])
def test_who_stood_at_the_target_before_has_not_followed_by_pulling_from_there(is_broadcast: bool) -> None:
    client = _client()
    story = Story(client, is_broadcast=is_broadcast, stood=frozenset(TARGETS))
    story.stands(client, q0=40, q1=40)
    story.pull(client, 100)
    story.pull(client, 200, queue_id=1)
    story.now_ms = LATE_MS
    story.pull(client, 110)
    story.watch.on_tick(story.now)
    assert story.state(client) is ReceiptState.TOLD


def test_who_stood_at_the_target_before_and_commits_it_has_followed() -> None:
    client = _client()
    story = Story(client, stood=frozenset(TARGETS))
    story.stands(client, q0=40)
    assert not story.commit(client, 50)
    story.pull(client, 100)
    assert not story.commit(client, 50)
    story.commit(client, 100)
    assert story.state(client) is ReceiptState.CONFIRMED


@pytest.mark.parametrize("is_broadcast", [False, True])
def test_who_stood_at_the_target_before_is_asked_once_more_and_believed(is_broadcast: bool) -> None:
    client = _client()
    story = Story(client, is_broadcast=is_broadcast, stood=frozenset(TARGETS))
    story.stands(client, q0=40, q1=40)
    assert story.pull(client, 100) == [AskStanding(story.watch, client)]
    assert story.pull(client, 200, queue_id=1) == []
    story.stands(client, q0=100, q1=200)
    assert story.state(client) is ReceiptState.CONFIRMED
    assert [row.old_offset for row in story.watch.receipts[0].view().queues] == [40, 40]


@pytest.mark.parametrize("is_broadcast", [False, True])
def test_who_reads_up_to_the_target_before_it_knows_is_asked_and_believed(is_broadcast: bool) -> None:
    client = _client()
    story = Story(client, is_broadcast=is_broadcast)
    story.stands(client, q0=0, q1=0)
    for queue_id, target in TARGETS.items():
        story.pull(client, target - 32, queue_id, next_offset=target)
    assert story.pull(client, 100) == [AskStanding(story.watch, client)]
    story.stands(client, q0=90, q1=200)
    assert story.state(client) is ReceiptState.TOLD
    story.stands(client, q0=100, q1=200)
    assert story.state(client) is ReceiptState.CONFIRMED


def test_a_newcomer_that_never_asked_does_not_take_over_where_the_group_stood_at_the_target() -> None:
    client, newcomer = _client("c1"), _client("c2")
    story = Story(client, stood=frozenset({0}))
    story.members[newcomer.connection] = newcomer
    story.stands(client, q0=40)
    story.pull(newcomer, 100)
    assert story.state(client) is ReceiptState.TOLD
    story.query(newcomer)
    story.pull(newcomer, 100)
    assert story.state(client) is ReceiptState.CONFIRMED


def test_where_a_client_stands_in_queues_that_are_not_of_the_order_is_not_kept() -> None:
    client = _client()
    story = Story(client)
    story.stands(client, q0=150, q7=3)
    assert story.watch.receipts[0].old_offsets == {0: 150}


# Orders that come before the client has a queue


@pytest.mark.behaviour("S4-30", "S4-50")
def test_a_broadcasting_client_that_had_no_queue_when_it_was_told_is_told_once_more() -> None:
    client = _client()
    story = Story(client, is_broadcast=True)
    story.stands(client)
    story.now_ms += PAUSE_MS
    actions = story.pull(client, 0, next_offset=32)
    assert actions == [AskStanding(story.watch, client), TellClient(story.watch, client)]
    story.pull(client, 0, queue_id=1, next_offset=200)
    # It reads on until it knows, and by that comes to the target of a queue.
    story.pull(client, 200, queue_id=1)
    story.stands(client, q0=3, q1=5)
    assert story.state(client) is ReceiptState.TOLD
    story.now_ms += PAUSE_MS
    story.pull(client, 100)
    assert story.pull(client, 200, queue_id=1) == [AskStanding(story.watch, client)]
    assert story.state(client) is ReceiptState.TOLD
    story.stands(client, q0=100, q1=200)
    assert story.state(client) is ReceiptState.CONFIRMED


def test_in_broadcasting_who_has_just_come_is_told_once_more_when_it_has_its_queues() -> None:
    story = Story(is_broadcast=True)
    story.now_ms = LATE_MS
    late = _client()
    story.members[late.connection] = late
    story.watch.on_member(late, story.now, is_broadcast=True)
    story.now_ms += PAUSE_MS
    assert TellClient(story.watch, late) in story.pull(late, 0, next_offset=32)


def test_who_is_told_once_more_is_not_sent_back_where_it_has_moved() -> None:
    client = _client()
    story = Story(client, is_broadcast=True)
    story.now_ms += PAUSE_MS
    story.pull(client, 100, next_offset=110)
    again = TellClient(story.watch, client, moved=frozenset({0}))
    assert again in story.pull(client, 0, queue_id=1, next_offset=32)


def test_who_was_told_once_more_and_goes_on_elsewhere_still_has_failed() -> None:
    client = _client()
    story = Story(client, is_broadcast=True)
    story.now_ms += PAUSE_MS
    assert story.pull(client, 0, next_offset=32)
    story.now_ms += PAUSE_MS
    assert story.pull(client, 32, next_offset=64) == []
    story.now_ms += PATIENCE_MS
    story.pull(client, 64, next_offset=96)
    assert story.state(client) is ReceiptState.FAILED


def test_who_was_told_once_more_and_comes_back_may_have_no_queue_again() -> None:
    client, returned = _client(), _client(port=2)
    story = Story(client, is_broadcast=True)
    story.now_ms += PAUSE_MS
    assert story.pull(client, 0, next_offset=32)
    story.watch.on_left(client.connection)
    story.members = {returned.connection: returned}
    assert story.watch.on_member(returned, story.now, is_broadcast=True)
    story.now_ms += PAUSE_MS
    assert TellClient(story.watch, returned) in story.pull(returned, 32, next_offset=64)


@pytest.mark.parametrize("is_first", [False, True])
def test_a_client_that_had_the_queue_when_it_was_told_is_not_told_once_more(is_first: bool) -> None:
    """A pull that comes within its pause was under way."""
    client = _client()
    story = Story(client, is_broadcast=True)
    story.now_ms += PAUSE_MS - 1
    assert story.pull(client, 0, next_offset=32) == []
    if not is_first:
        story.now_ms += PAUSE_MS
        assert story.pull(client, 32, next_offset=64) == []


def test_a_client_that_stood_at_the_target_and_reads_on_from_there_is_not_told_once_more() -> None:
    client = _client()
    story = Story(client, is_broadcast=True, stood=frozenset(TARGETS))
    story.now_ms += PAUSE_MS
    assert story.pull(client, 101, next_offset=102) == []


@pytest.mark.parametrize(
    "client", [_client(version=407), _client(language="PYTHON")], ids=["can not move", "says it itself"]
)
def test_a_client_that_needs_no_queue_or_has_no_use_for_it_is_not_told_once_more(client: Client) -> None:
    story = Story(client, is_broadcast=True)
    story.now_ms += PAUSE_MS
    assert story.pull(client, 0, next_offset=32) == []


def test_in_clustering_a_client_without_queues_asks_for_its_offsets_and_is_not_told_once_more() -> None:
    client = _client()
    story = Story(client)
    story.now_ms += PAUSE_MS
    assert story.pull(client, 0, next_offset=32) == []


# Those who come and go


def test_who_returns_is_not_sent_back_to_the_target_where_the_group_has_been_since() -> None:
    client, newcomer, returned = _client("c1"), _client("c2"), _client("c1", port=2)
    story = Story(client)
    story.members |= {newcomer.connection: newcomer, returned.connection: returned}
    story.pull(newcomer, 200, queue_id=1)
    story.watch.on_left(client.connection)
    actions = story.watch.on_member(returned, _at(LATE_MS), is_broadcast=False)
    assert TellClient(story.watch, returned, frozenset({1})) in actions
    story.now_ms = 2 * LATE_MS
    story.pull(returned, 900, queue_id=1)
    assert story.state(returned) is ReceiptState.TOLD
    story.stands(returned, q0=150, q1=900)
    story.commit(returned, 100)
    assert story.state(returned) is ReceiptState.CONFIRMED


def test_who_returns_and_has_nothing_left_to_go_to_is_sent_to_where_the_group_stands() -> None:
    client, newcomer, returned = _client("c1"), _client("c2"), _client("c1", port=2)
    story = Story(client)
    story.members |= {newcomer.connection: newcomer, returned.connection: returned}
    story.stands(client, q0=150)
    story.watch.on_left(client.connection)
    story.commit(newcomer, 100)
    actions = story.watch.on_member(returned, _at(LATE_MS), is_broadcast=False)
    assert actions == [AskStanding(story.watch, returned), TellClient(story.watch, returned, frozenset({0}))]
    story.now_ms = LATE_MS
    assert not story.commit(returned, 160)
    assert not story.commit(returned, 100)
    story.stands(returned, q0=150)
    assert (story.state(returned), story.reason(returned)) == (
        ReceiptState.CONFIRMED,
        "its queues went to others",
    )
    story.query(returned)
    assert story.commit(returned, 160)


def test_who_returns_and_had_moved_in_every_queue_is_asked_and_not_told() -> None:
    client, returned = _client("c1"), _client("c1", port=2)
    story = Story(client)
    story.members[returned.connection] = returned
    story.pull(client, 100)
    story.pull(client, 200, queue_id=1)
    story.watch.on_left(client.connection)
    assert story.watch.on_member(returned, _at(START_MS), is_broadcast=False) == [
        AskStanding(story.watch, returned)
    ]
    story.stands(returned, q0=150, q1=900)
    assert story.state(returned) is ReceiptState.CONFIRMED


def test_a_client_of_ours_says_that_it_went_to_where_the_group_stands() -> None:
    client, newcomer = _client("c1", language="PYTHON"), _client("c2", language="PYTHON")
    returned = _client("c1", language="PYTHON", port=2)
    story = Story(client)
    story.members |= {newcomer.connection: newcomer, returned.connection: returned}
    story.watch.on_left(client.connection)
    story.pull(newcomer, 100)
    story.pull(newcomer, 200, queue_id=1)
    story.watch.on_member(returned, _at(START_MS), is_broadcast=False)
    assert story.state(returned) is ReceiptState.TOLD
    moved = QueueReceipt(queue_id=0, old_offset=QueueOffset(150), new_offset=QueueOffset(120))
    story.watch.on_receipt(returned, QueueReceipts(queues=[moved]), _at(START_MS))
    assert (story.state(returned), story.reason(returned)) == (
        ReceiptState.CONFIRMED,
        "its queues went to others",
    )
    assert story.commit(returned, 121)
    assert not story.commit(returned, 250, queue_id=1)


def test_a_commit_that_comes_ahead_of_its_members_heartbeat_is_no_operators() -> None:
    client, returned = _client(language="PYTHON"), _client(language="PYTHON", port=2)
    story = Story(client)
    story.watch.on_left(client.connection)
    story.now_ms = 2 * LATE_MS
    assert not story.commit(returned, 150, is_one_way=False, says_who=True)
    assert story.commit(returned, 150, is_one_way=False)
    story.members = {returned.connection: returned}
    assert TellClient(story.watch, returned) in story.watch.on_member(returned, story.now, is_broadcast=False)
    assert not story.commit(returned, 150, is_one_way=False, says_who=True)


def test_a_commit_ahead_of_the_heartbeat_counts_if_its_member_had_moved() -> None:
    client, returned = _client(language="PYTHON"), _client(language="PYTHON", port=2)
    story = Story(client)
    moved = QueueReceipt(queue_id=0, new_offset=QueueOffset(100))
    story.watch.on_receipt(client, QueueReceipts(queues=[moved]), _at(START_MS))
    story.watch.on_left(client.connection)
    assert story.commit(returned, 150, is_one_way=False, says_who=True)


def test_a_commit_ahead_of_the_heartbeat_of_who_is_not_known_counts_once_nobody_is_judged() -> None:
    story, stranger = Story(), _client(language="PYTHON")
    assert not story.commit(stranger, 150, is_one_way=False, says_who=True)
    story.now_ms = LATE_MS
    assert story.commit(stranger, 150, is_one_way=False, says_who=True)


def test_in_clustering_who_has_failed_is_not_told_again() -> None:
    client, returned = _client(), _client(port=2)
    story = Story(client)
    story.now_ms = LATE_MS
    story.pull(client, 150)
    story.watch.on_left(client.connection)
    assert story.watch.on_member(returned, _at(LATE_MS), is_broadcast=False) == []
    assert story.state(returned) is ReceiptState.FAILED


def test_nothing_is_kept_of_who_was_not_told_and_has_left() -> None:
    story = Story()
    newcomer, operator = _client("c1"), _client("o9")
    story.members = {newcomer.connection: newcomer}
    story.query(newcomer)
    story.watch.on_left(newcomer.connection)
    story.query(operator)
    assert not story.commit(newcomer, 150)
    story.members[operator.connection] = operator
    assert not story.commit(operator, 150)


@pytest.mark.behaviour("S4-30", "S4-50")
def test_in_broadcasting_who_comes_later_is_told() -> None:
    story = Story(is_broadcast=True)
    late = _client()
    actions = story.watch.on_member(late, _at(LATE_MS), is_broadcast=True)
    assert actions == [AskStanding(story.watch, late), TellClient(story.watch, late)]
    assert story.watch.on_member(late, _at(LATE_MS), is_broadcast=True) == []


def test_in_clustering_who_comes_later_asks_for_its_offsets_and_is_not_told() -> None:
    story = Story()
    late = _client()
    assert story.watch.on_member(late, _at(START_MS), is_broadcast=False) == []


def test_an_offline_group_may_turn_out_to_broadcast() -> None:
    story = Story()
    story.watch.is_model_known = False
    late = _client()
    assert story.watch.on_member(late, _at(LATE_MS), is_broadcast=True)
    assert story.watch.is_broadcast


@pytest.mark.parametrize("is_broadcast", [False, True])
def test_who_left_before_it_had_moved_is_told_again_when_it_returns(is_broadcast: bool) -> None:
    client, returned = _client(), _client(port=2)
    story = Story(client, is_broadcast=is_broadcast)
    story.watch.on_left(client.connection)
    assert (story.state(client), story.reason(client)) == (
        ReceiptState.PENDING,
        "it left before it had moved",
    )
    actions = story.watch.on_member(returned, _at(LATE_MS), is_broadcast=is_broadcast)
    assert TellClient(story.watch, returned) in actions
    assert (story.state(returned), len(story.watch.receipts)) == (ReceiptState.TOLD, 1)


def test_last_words_on_an_old_connection_are_of_nobody_who_is_missing() -> None:
    client, again = _client(language="PYTHON"), _client(language="PYTHON", port=2)
    story = Story(again, is_broadcast=True)
    assert story.watch.on_member(client, _at(START_MS), is_broadcast=True)
    story.watch.on_left(client.connection)
    assert [receipt.connection for receipt in story.watch.receipts] == [again.connection]


def test_who_has_moved_is_not_told_again() -> None:
    client, returned = _client(), _client(port=2)
    story = Story(client)
    story.stands(client, q0=150)
    story.commit(client, 100)
    story.watch.on_left(client.connection)
    story.members = {returned.connection: returned}
    assert story.watch.on_member(returned, _at(START_MS), is_broadcast=False) == []
    assert story.commit(returned, 107)


def test_who_comes_and_goes_all_the_time_is_given_up() -> None:
    story = Story(is_broadcast=True)
    for port in range(MAX_TELLS + 1):
        client = _client(port=port + 1)
        story.watch.on_member(client, _at(START_MS + port * BURST_MS), is_broadcast=True)
        story.watch.on_left(client.connection)
    assert [receipt.state for receipt in story.watch.receipts] == [ReceiptState.FAILED]


def test_a_broker_that_stood_still_gives_nobody_up_for_all_the_connections_that_have_ended() -> None:
    story = Story(is_broadcast=True)
    for port in range(3 * MAX_TELLS):
        client = _client(port=port + 1)
        story.watch.on_member(client, _at(START_MS + port), is_broadcast=True)
        story.watch.on_left(client.connection)
    last = _client(port=100)
    actions = story.watch.on_member(last, _at(START_MS + BURST_MS - 1), is_broadcast=True)
    assert TellClient(story.watch, last) in actions


def test_two_clients_of_one_id_have_a_receipt_each() -> None:
    first, second = _client(port=1), _client(port=2)
    story = Story(first, second, is_broadcast=True)
    for queue_id, target in TARGETS.items():
        story.pull(first, target, queue_id=queue_id)
    assert [receipt.state for receipt in story.watch.receipts] == [ReceiptState.CONFIRMED, ReceiptState.TOLD]


@pytest.mark.parametrize("is_broadcast", [False, True])
def test_who_returns_and_may_be_either_of_two_is_the_one_that_has_not_moved(is_broadcast: bool) -> None:
    """A broker that stood still hears of new connections before it hears that the old ones ended."""
    first, second, returned = (_client(port=port) for port in (1, 2, 3))
    story = Story(first, second, is_broadcast=is_broadcast)
    story.stands(first, q0=150, q1=150)
    for queue_id, target in TARGETS.items():
        story.pull(first, target, queue_id=queue_id)
    story.watch.on_left(first.connection)
    story.watch.on_left(second.connection)
    story.members = {returned.connection: returned}
    states = [receipt.state for receipt in story.watch.receipts]
    assert states == [ReceiptState.CONFIRMED, ReceiptState.PENDING]
    actions = story.watch.on_member(returned, story.now, is_broadcast=is_broadcast)
    assert AskStanding(story.watch, returned) in actions
    assert story.watch.receipts[1].connection is returned.connection


def test_clients_beyond_what_an_order_follows_are_counted_and_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watches, "MAX_RECEIPTS", 2)
    story = Story(_client("c1"), _client("c2"), _client("c3"), is_broadcast=True)
    late = _client("c4")
    for _heartbeat in range(2):
        assert story.watch.on_member(late, _at(START_MS), is_broadcast=True) == []
    *kept, more = story.watch.receipts
    assert [receipt.client_id for receipt in kept] == ["c1", "c2"]
    assert (more.state, more.reason) == (
        ReceiptState.FAILED,
        "2 more clients are there than the 2 that an order follows",
    )


# What is under way


@pytest.mark.behaviour("S4-18")
@pytest.mark.parametrize("old", [150, 50])
def test_a_commit_that_was_under_way_does_not_take_the_reset_back(old: int) -> None:
    client = _client()
    story = Story(client)
    assert not story.commit(client, old)
    assert story.commit(client, 100)
    assert story.commit(client, 101)


@pytest.mark.behaviour("S4-18")
@pytest.mark.parametrize(
    "order",
    [*itertools.permutations(["stale commit", "stale pull", "stands", "moved"])],
    ids=", ".join,
)
def test_in_whatever_order_messages_come_the_target_stays_and_the_move_is_seen(
    order: tuple[str, ...],
) -> None:
    """After the move stale ones come from another connection: on one, what is sent first comes first."""
    client, other = _client("c1"), _client("c2")
    story = Story(client, other)
    story.stands(other, q1=3)
    has_moved, stored = False, 100
    for step in order:
        match step:
            case "stale commit":
                source = other if has_moved else client
                stored = 160 if story.commit(source, 160) else stored
            case "stale pull":
                story.pull(other if has_moved else client, 160, next_offset=170)
            case "stands":
                story.stands(client, q0=150)
            case _:
                has_moved = True
                assert story.commit(client, 100)
                story.query(client)
                story.pull(client, 100, next_offset=110)
    assert stored == 100
    assert story.state(client) is ReceiptState.CONFIRMED


@pytest.mark.behaviour("S4-18")
def test_nobodys_progress_is_held_for_longer_than_the_patience() -> None:
    client = _client()
    story = Story(client)
    story.now_ms = START_MS + PATIENCE_MS
    assert not story.commit(client, 150)
    story.now_ms += 1
    assert story.commit(client, 150)
    assert story.state(client) is ReceiptState.FAILED


@pytest.mark.behaviour("S4-18")
def test_who_takes_a_queue_over_goes_on_from_the_answer_to_its_question() -> None:
    before, after = _client("c1"), _client("c2")
    story = Story(before, after)
    story.query(after)
    assert story.commit(after, 130)
    assert not story.commit(before, 150)


def test_an_operators_commit_counts() -> None:
    client, operator = _client(), _client("o9")
    story = Story(client)
    assert story.commit(operator, 7, is_one_way=False)


def test_a_commit_on_another_connection_of_a_clients_machine_is_taken_for_the_clients() -> None:
    client, second = _client(), _client(port=9)
    story = Story(client)
    assert not story.commit(second, 150)
    story.stands(client, q0=150)
    story.commit(client, 100)
    assert story.commit(second, 150)


def test_a_member_that_was_away_and_goes_on_elsewhere_is_told_then() -> None:
    story = Story()
    stale, fresh = _client("c1"), _client("c2")
    story.members = {client.connection: client for client in (stale, fresh)}
    story.query(fresh)
    assert story.pull(fresh, 100) == []
    assert TellClient(story.watch, stale) in story.pull(stale, 150)
    assert not story.commit(stale, 150)
    assert story.commit(fresh, 110)


def test_strangers_are_not_judged_for_ever() -> None:
    story = Story()
    client = _client()
    story.members = {client.connection: client}
    story.now_ms = LATE_MS
    assert story.pull(client, 5000) == []
    assert story.commit(client, 5000)


def _late_comer() -> tuple[Story, Client]:
    """Just before strangers are judged no longer somebody comes who had another replica until now."""
    story, client = Story(), _client()
    story.members = {client.connection: client}
    story.now_ms = START_MS + PATIENCE_MS
    assert story.watch.on_member(client, story.now, is_broadcast=False) == []
    return story, client


def test_who_comes_while_strangers_are_judged_is_judged_for_as_long_from_then_on() -> None:
    story, client = _late_comer()
    story.now_ms += PATIENCE_MS
    # The heartbeats that follow begin nothing anew.
    story.watch.on_member(client, story.now, is_broadcast=False)
    assert not story.watch.is_over(story.now)
    assert not story.commit(client, 150)
    assert story.state(client) is ReceiptState.TOLD
    again, client = _late_comer()
    again.now_ms += PATIENCE_MS
    assert TellClient(again.watch, client) in again.pull(client, 150)


def test_who_comes_while_strangers_are_judged_and_asks_where_the_group_stands_is_not_told() -> None:
    story, client = _late_comer()
    story.query(client)
    story.now_ms += PATIENCE_MS
    assert story.pull(client, 110) == []
    assert story.commit(client, 120)


@pytest.mark.parametrize("ends", ["late", "left", "superseded"])
def test_nobody_is_judged_for_ever_from_when_it_came(ends: str) -> None:
    story, client = _late_comer()
    story.now_ms += PATIENCE_MS
    if ends == "late":
        story.now_ms += 1
    elif ends == "left":
        story.watch.on_left(client.connection)
    else:
        story.watch.supersede("o2")
    assert story.watch.is_over(story.now)
    assert story.pull(client, 150) == []
    assert story.commit(client, 150)


def test_queues_that_are_not_of_the_order_are_none_of_its_business() -> None:
    client = _client()
    story = Story(client)
    assert story.commit(client, 5, queue_id=7)
    assert story.pull(client, 5, queue_id=7) == []


def test_in_broadcasting_what_is_committed_here_counts() -> None:
    client = _client()
    assert Story(client, is_broadcast=True).commit(client, 3)


# Told by the answers to pulls


def test_on_the_servers_side_nothing_is_sent_and_pulls_that_wait_are_woken() -> None:
    client = _client()
    story = Story(client, is_server_side=True)
    assert story.began == [AskStanding(story.watch, client), WakePulls(story.watch)]
    assert story.state(client) is ReceiptState.PENDING


def test_on_the_servers_side_each_member_of_a_broadcasting_group_is_sent_once_in_each_queue() -> None:
    clients = [_client(name) for name in ("c1", "c2", "c3")]
    watch = Story(*clients, is_broadcast=True, is_server_side=True).watch
    sent = [
        watch.take_pending(client.connection, queue_id, 999, _at(START_MS))
        for _round in range(2)
        for client in clients
        for queue_id in TARGETS
    ]
    assert sent == [100, 200] * 3 + [None] * 6
    assert [receipt.state for receipt in watch.receipts] == [ReceiptState.TOLD] * 3


def test_on_the_servers_side_who_stands_at_the_target_is_not_sent_anywhere() -> None:
    client = _client()
    story = Story(client, is_server_side=True)
    assert story.watch.take_pending(client.connection, 0, 100, _at(START_MS)) is None
    story.stands(client, q0=100)
    story.pull(client, 100)
    assert story.state(client) is ReceiptState.CONFIRMED


def test_on_the_servers_side_who_stood_at_the_target_before_is_sent_there_to_drop_what_it_has() -> None:
    client = _client()
    story = Story(client, is_server_side=True, stood=frozenset({0}))
    assert story.watch.take_pending(client.connection, 0, 100, _at(START_MS)) == 100
    assert story.watch.take_pending(client.connection, 0, 100, _at(START_MS)) is None


def test_on_the_servers_side_commits_are_passed_over_while_the_answer_is_pending() -> None:
    client = _client()
    story = Story(client, is_server_side=True)
    assert not story.commit(client, 150)
    assert story.watch.take_pending(client.connection, 0, 150, _at(START_MS)) == 100
    assert not story.commit(client, 150)
    assert story.commit(client, 100)


def test_on_the_servers_side_a_client_is_told_once_however_many_queues_it_has() -> None:
    client = _client()
    story = Story(client, is_server_side=True)
    story.watch.take_pending(client.connection, 0, 150, _at(START_MS))
    story.watch.take_pending(client.connection, 1, 250, _at(LATE_MS - 1))
    story.now_ms = LATE_MS
    story.pull(client, 150)
    assert story.state(client) is ReceiptState.FAILED


# Its end


def test_a_newer_order_ends_the_wait_of_an_older_one() -> None:
    client = _client()
    story = Story(client)
    story.watch.supersede("o2")
    assert (story.state(client), story.reason(client)) == (
        ReceiptState.FAILED,
        "order o2 came before it had moved",
    )


def test_a_watch_is_over_when_all_have_moved_and_nothing_can_be_under_way() -> None:
    client = _client()
    story = Story(client)
    assert not story.watch.is_over(_at(LATE_MS))
    story.stands(client, q0=150)
    story.commit(client, 100)
    assert not story.watch.is_over(_at(START_MS))
    assert story.watch.is_over(_at(LATE_MS))
    assert not Story(is_broadcast=True).watch.is_over(_at(LATE_MS))
