"""A consumer's decisions, whatever happens and in whatever order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tanist.client.pulling.replica_choice import MOST_REST_S, ReplicaChoice
from tanist.client.queues.cached_queue import CachedQueue
from tanist.client.received import ReceivedMessage
from tests.support.received import QUEUE, at, received, take_from

steps = st.one_of(
    st.tuples(st.just("add"), st.lists(st.integers(1, 5), max_size=6), st.integers(0, 3)),
    st.tuples(st.just("take"), st.integers(1, 4)),
    st.tuples(st.just("done"), st.integers(0, 50)),
    st.tuples(st.just("give back"), st.integers(0, 5)),
    st.tuples(st.just("restart"), st.integers(0, 30)),
    st.tuples(st.just("drop")),
)


class ModelQueue:
    """The same, said as simply as can be: lists that are searched from end to end."""

    def __init__(self) -> None:
        self.next_offset = 0
        self.unfinished: list[ReceivedMessage] = []
        self.waiting: list[ReceivedMessage] = []
        self.frozen_offset: int | None = None

    @property
    def consumer_offset(self) -> int:
        if self.frozen_offset is not None:
            return self.frozen_offset
        return min([self.next_offset, *(message.queue_offset for message in self.unfinished)])

    def forget(self) -> None:
        self.unfinished, self.waiting = [], []


class Run:
    """One queue and its model, through the same steps."""

    def __init__(self) -> None:
        self.queue = CachedQueue(QUEUE, at(0))
        self.model = ModelQueue()
        self.taken: list[ReceivedMessage] = []

    def happen(self, step: tuple[Any, ...]) -> None:
        queue, model = self.queue, self.model
        match step:
            case ("add", gaps, rest):
                self.add(gaps, rest)
            case ("take", count):
                taken, model.waiting = model.waiting[:count], model.waiting[count:]
                assert take_from(queue, count) == taken
                self.taken += taken
            case ("done", number) if self.taken:
                # Of all ever taken, what was taken before a restart and is finished twice included.
                message = self.taken[int(number) % len(self.taken)]
                is_ours = any(message is other for other in model.unfinished)
                is_back = any(message is other for other in model.waiting)
                if not is_back:
                    assert queue.done(message) is is_ours
                    model.unfinished = [other for other in model.unfinished if other is not message]
            case ("give back", count):
                back = [message for message in self.taken[len(self.taken) - count :] if self.is_held(message)]
                queue.give_back(back)
                model.waiting = back + model.waiting
            case ("restart", offset) if model.frozen_offset is None:
                queue.restart(at(offset))
                model.forget()
                model.next_offset = offset
            case ("drop",):
                queue.drop()
                model.frozen_offset = model.consumer_offset
                model.forget()
            case _:
                pass

    def add(self, gaps: list[int], rest: int) -> None:
        model = self.model
        offsets, offset = list[int](), model.next_offset - 1
        for gap in gaps:
            offset += gap
            offsets.append(offset)
        messages, start, end = received(*offsets), model.next_offset, offset + 1 + rest
        is_wanted = self.queue.add(messages, fetched_from=at(start), next_offset=at(end))
        assert is_wanted is (model.frozen_offset is None)
        if is_wanted:
            model.unfinished += messages
            model.waiting += messages
            model.next_offset = end

    def is_held(self, message: ReceivedMessage) -> bool:
        """Whether somebody has it who has not finished it."""
        return any(message is other for other in self.model.unfinished) and not any(
            message is other for other in self.model.waiting
        )

    def check(self) -> None:
        queue, model = self.queue, self.model
        assert queue.consumer_offset == model.consumer_offset
        assert queue.count == len(model.unfinished)
        assert queue.waiting_count == len(model.waiting)
        assert queue.size_bytes == sum(len(message.body) for message in model.unfinished)
        assert (queue.span == 0) is (not model.unfinished)


@given(st.lists(steps, max_size=40))
def test_a_cached_queue_is_what_a_search_of_all_its_messages_says(script: list[tuple[Any, ...]]) -> None:
    run = Run()
    for step in script:
        run.happen(step)
        run.check()


ids = st.integers(0, 3)
addresses = st.sampled_from(["h:1", "h:2"])
replica_events = st.one_of(
    st.tuples(st.just("route"), st.dictionaries(ids, addresses)),
    st.tuples(st.just("answer"), ids),
    st.tuples(st.just("refused"), st.none() | ids),
    st.tuples(st.just("lost")),
    st.tuples(st.just("time"), st.floats(0, 40)),
)


class Reading:
    """A choice, and what happens to the replica that it names."""

    def __init__(self) -> None:
        self.choice = ReplicaChoice()
        self.replicas: dict[int, str] = {}
        self.now_s = 0.0

    def happen(self, event: tuple[Any, ...]) -> None:
        asked = self.choice.choose(self.now_s)
        match event:
            case ("route", replicas):
                self.choice.on_route(replicas)
                self.replicas = replicas
            case ("answer", suggested) if asked is not None:
                self.choice.on_answer(asked, suggested)
            case ("refused", suggested) if asked is not None:
                self.choice.on_refused(asked, suggested, self.now_s)
            case ("lost",) if asked is not None:
                self.choice.on_lost(asked, self.now_s)
            case ("time", elapsed_s):
                self.now_s += elapsed_s
            case _:
                pass


@given(st.lists(replica_events, max_size=30))
def test_only_replicas_of_the_route_are_read_and_one_always_if_there_is_one(
    script: list[tuple[Any, ...]],
) -> None:
    reading = Reading()
    for event in script:
        reading.happen(event)
        chosen = reading.choice.choose(reading.now_s)
        assert chosen in reading.replicas if reading.replicas else chosen is None


@given(st.lists(replica_events, max_size=30), st.dictionaries(ids, addresses, min_size=1))
def test_a_master_that_comes_into_the_route_is_read_at_once(
    script: list[tuple[Any, ...]], replicas: dict[int, str]
) -> None:
    reading = Reading()
    for event in script:
        reading.happen(event)
    reading.happen(("route", {key: value for key, value in replicas.items() if key != 0}))
    reading.happen(("route", {**replicas, 0: "m:1"}))
    assert reading.choice.choose(reading.now_s) == 0


@given(st.lists(replica_events, max_size=30), st.dictionaries(ids, addresses))
def test_a_healthy_master_is_read_soon_once_those_who_answer_suggest_it(
    script: list[tuple[Any, ...]], replicas: dict[int, str]
) -> None:
    reading = Reading()
    for event in (*script, ("route", {**replicas, 0: "m:1"}), ("time", MOST_REST_S)):
        reading.happen(event)
    # Whoever is asked answers, and says what a slave says whose master is there.
    reading.happen(("answer", 0))
    assert reading.choice.choose(reading.now_s) == 0


@given(st.lists(replica_events, max_size=30))
def test_a_replica_that_was_lost_is_not_asked_again_before_all_others_were(
    script: list[tuple[Any, ...]],
) -> None:
    reading = Reading()
    for event in (*script, ("time", MOST_REST_S)):
        reading.happen(event)
    tired: set[int] = set()
    while (asked := reading.choice.choose(reading.now_s)) is not None and asked not in tired:
        tired.add(asked)
        reading.choice.on_lost(asked, reading.now_s)
    assert tired == set(reading.replicas)
