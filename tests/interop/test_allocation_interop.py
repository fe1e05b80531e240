"""Tanist's members take the queues that RocketMQ's would: its own classes are asked the same questions."""

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tanist.client.queues.allocation import (
    AllocationStrategy,
    Averagely,
    AveragelyByCircle,
    ByMachineRoom,
    ConsistentHash,
    sort_client_ids,
    sort_queues,
)
from tanist.model.route import MessageQueue
from tests.support.allocating import ROOMS, nearby
from tests.support.rocketmq.stock_client import StockClients

pytestmark = pytest.mark.partner("java", "maven")

PIECES = (
    "a",
    "z",
    "Z",
    "-",
    "#",
    "10.0.0.1",
    "10.0.0.10",
    "größe",
    "\ue000",
    "\uff5e",
    "\U0001f600",
    "@",
    "",
)


class Question(msgspec.Struct, frozen=True, rename="camel"):
    strategy: str
    queues: list[MessageQueue]
    client_ids: list[str]
    client_id: str
    virtual_nodes: int
    rooms: list[str]


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    queues: list[MessageQueue]
    client_ids: list[str]
    taken: list[MessageQueue]


def strategies(question: Question) -> Sequence[AllocationStrategy]:
    plain = (Averagely(), AveragelyByCircle(), ConsistentHash(question.virtual_nodes))
    return *plain, ByMachineRoom(question.rooms), *map(nearby, plain)


def answer(question: Question) -> Answer:
    queues, client_ids = sort_queues(question.queues), sort_client_ids(question.client_ids)
    (strategy,) = (found for found in strategies(question) if found.name == question.strategy)
    taken = strategy.allocate("G", question.client_id, queues, client_ids)
    return Answer(strategy.name, queues, client_ids, taken)


def answers_of_rocketmq(clients: StockClients, home: Path, questions: Sequence[Question]) -> list[Answer]:
    file = home / "questions"
    file.write_bytes(b"".join(msgspec.json.encode(question) + b"\n" for question in questions))
    return msgspec.convert(clients.process.do("allocate", questions=str(file)), list[Answer])


def random_name(rng: random.Random) -> str:
    return f"{rng.choice(ROOMS)}@{''.join(rng.choices(PIECES, k=3))}"


def random_question(rng: random.Random, strategy: str) -> Question:
    brokers = [random_name(rng) for _ in range(rng.randint(1, 5))]
    topic = rng.choice(("T", "%RETRY%G", "Größe\U0001f600"))
    places = {(rng.choice(brokers), rng.randrange(20)) for _ in range(rng.choice((0, 1, 3, 8, 16, 40)))}
    client_ids = [random_name(rng) for _ in range(rng.choice((1, 2, 3, 5, 8, 20, 60)))]
    client_ids += rng.choice(([], [], client_ids[:2]))
    return Question(
        strategy=strategy,
        queues=[MessageQueue(topic=topic, broker_name=name, queue_id=number) for name, number in places],
        client_ids=client_ids,
        client_id=rng.choice((*client_ids, *client_ids, "stranger")),
        virtual_nodes=rng.choice((1, 10, 10, 40)),
        rooms=rng.sample(ROOMS, k=3),
    )


def test_members_take_what_rocketmqs_classes_give_them(clients: StockClients, tmp_path: Path) -> None:
    """Some questions name a member twice, as a broker does that knows it by two connections."""
    rng = random.Random(1_402)
    names = [
        *("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM"),
        *("MACHINE_ROOM_NEARBY-AVG", "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE"),
        "MACHINE_ROOM_NEARBY-CONSISTENT_HASH",
    ]
    questions = [random_question(rng, name) for name in names for _ in range(300)]
    theirs = answers_of_rocketmq(clients, tmp_path, questions)
    for question, their in zip(questions, theirs, strict=True):
        assert answer(question) == their, question
    # All kinds were compared: nothing to take, more members than queues, members named twice.
    assert sum(not question.queues for question in questions) > 100
    assert sum(0 < len(question.queues) < len(question.client_ids) for question in questions) > 100
    assert sum(len(set(question.client_ids)) < len(question.client_ids) for question in questions) > 100
    for name in names:
        assert sum(bool(their.taken) for their in theirs if their.name == name) > 50, name


def test_members_of_both_lines_share_every_queue(clients: StockClients, tmp_path: Path) -> None:
    """Half of a group are Tanist's: together they take each queue once."""
    members = [f"10.0.0.{n}@{n}#4242" for n in range(7)]
    queues = [
        MessageQueue(topic="T", broker_name=f"broker-{name}", queue_id=number)
        for name in "abc"
        for number in range(8)
    ]
    for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        questions = [Question(name, queues, members, member, 10, []) for member in members]
        theirs = answers_of_rocketmq(clients, tmp_path, questions[::2])
        taken = [queue for found in (*theirs, *map(answer, questions[1::2])) for queue in found.taken]
        assert sort_queues(taken) == sort_queues(queues)
