import pytest

from tanist.admin.resets.cautions import GroupFacts, client_cautions, group_cautions
from tanist.admin.resets.client_versions import ignores_broadcast_reset, version_name
from tanist.admin.resets.plan import PlannedQueue
from tanist.model.groups import ConsumeType, MessageModel
from tanist.protocol.bodies.client import Connection


def client(language: str = "JAVA", version: int = 479) -> Connection:
    return Connection(client_id="c", client_addr="1.2.3.4:5", language=language, version=version)


def said(facts: GroupFacts, *queues: PlannedQueue) -> str:
    return "\n".join(group_cautions(facts, queues, "billing"))


def queue(*, now: int | None = 5, target: int = 1) -> PlannedQueue:
    return PlannedQueue(broker_name="a", queue_id=0, now=now, min_offset=0, max_offset=9, target=target)


ONLINE = {"a": [client()]}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (GroupFacts(connections=ONLINE | {"b": []}), "online at a and offline at b"),
        (GroupFacts(connections={"a": []}), "nobody of the group is online"),
        (GroupFacts(connections=ONLINE, subscribed=False), "do not subscribe to the topic"),
        (
            GroupFacts(connections=ONLINE, models=frozenset(MessageModel)),
            "some clients of the group consume in broadcasting",
        ),
        (GroupFacts(connections=ONLINE, is_orderly=True), "consumes in order"),
        (GroupFacts(connections=ONLINE, consume_type=ConsumeType.ACTIVELY), "pull by themselves"),
        (GroupFacts(connections=ONLINE, retry_backlog=3), "3 messages wait in the retry topic of billing"),
        (GroupFacts(connections=ONLINE, stock_brokers=("a",)), "a: no Tanist broker, so no client's receipt"),
    ],
)
def test_what_to_think_of_first_is_said(facts: GroupFacts, words: str) -> None:
    assert words in said(facts, queue())


def test_a_plain_group_has_nothing_to_think_of() -> None:
    assert said(GroupFacts(connections=ONLINE, subscribed=True), queue()) == ""


def test_queues_without_an_offset_and_a_plan_that_changes_nothing_are_said() -> None:
    facts = GroupFacts(connections=ONLINE)
    assert "in 1 of 2 queues the group has no offset yet" in said(facts, queue(), queue(now=None))
    assert "nothing would change" in said(facts, queue(target=5))
    broadcast = GroupFacts(connections=ONLINE, model=MessageModel.BROADCASTING)
    assert said(broadcast, queue(now=None)) == ""


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (393, "4.9.0"),
        (407, "4.9.7"),
        (408, "4.9.8-SNAPSHOT"),
        (409, "4.9.8"),
        (412, "5.0.0-SNAPSHOT"),
        (413, "5.0.0"),
        (453, "5.2.0"),
        (479, "5.3.3"),
        (121, "before 4.9 (121)"),
    ],
)
def test_a_version_has_a_name(version: int, name: str) -> None:
    assert version_name(version) == name


@pytest.mark.parametrize(
    ("language", "version", "ignores"),
    [
        ("JAVA", 407, True),
        ("JAVA", 409, False),
        ("JAVA", 413, True),
        ("JAVA", 441, True),
        ("JAVA", 453, False),
        ("JAVA", 479, False),
        ("PYTHON", 407, False),
    ],
)
def test_java_clients_that_do_not_keep_a_broadcast_reset_are_known(
    language: str, version: int, ignores: bool
) -> None:
    assert ignores_broadcast_reset(language, version) is ignores
    cautions = client_cautions(client(language, version), MessageModel.BROADCASTING)
    assert bool(cautions) is ignores
    assert client_cautions(client(language, version), MessageModel.CLUSTERING) == []
