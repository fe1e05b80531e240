import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tanist.admin.resets.plan import Plan, PlannedClient, PlannedQueue
from tanist.admin.resets.plan_file import PlanEdited, read_plan, write_plan
from tanist.admin.resets.refused import ResetRefused
from tanist.model.groups import MessageModel

QUEUES = [
    PlannedQueue(
        broker_name="a", queue_id=0, now=50, min_offset=10, max_offset=90, target=20, warnings=["old"]
    ),
    PlannedQueue(broker_name="a", queue_id=1, now=None, min_offset=0, max_offset=90, target=60),
]
PLAN = Plan(
    plan_id="20231114-221320-abcdef",
    created_ms=1_700_000_000_000,
    created_by="ann",
    name_server="10.0.0.9:9876",
    clusters=["C"],
    brokers=["a"],
    topic="T",
    group="g",
    model=MessageModel.CLUSTERING,
    target="-2h",
    queues=QUEUES,
    clients=[PlannedClient(client_id="c", address="1.2.3.4:5", language="JAVA", version="5.3.3")],
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    write_plan(path, PLAN)
    return path


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    whole = json.loads(path.read_text())
    change(whole)
    path.write_text(json.dumps(whole))


def test_a_plan_comes_back_as_it_was_written(path: Path) -> None:
    assert read_plan(path) == PLAN
    assert [entry.name for entry in path.parent.iterdir()] == ["plan.json"]


def test_spaces_and_the_order_of_members_are_no_edit(path: Path) -> None:
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(whole.items())), indent=7))
    assert read_plan(path) == PLAN


EDITS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda whole: whole["plan"]["queues"][1].update(target=5), "queue a:1"),
    (lambda whole: whole["plan"].update(group="h"), "group"),
    (lambda whole: whole["plan"]["clients"].clear(), "clients"),
    (lambda whole: whole["plan"]["queues"].pop(0), "queue a:0"),
    (lambda whole: whole["plan"]["queues"].append(whole["plan"]["queues"][0]), "queue a:0 twice"),
    (lambda whole: whole["plan"].update(extra=1), "extra"),
    (lambda whole: whole["digests"].clear(), "planId"),
]


@pytest.mark.parametrize(("change", "part"), EDITS)
def test_an_edit_is_noticed_and_named(
    path: Path, change: Callable[[dict[str, Any]], object], part: str
) -> None:
    edit(path, change)
    with pytest.raises(PlanEdited, match="was edited since it was planned") as refused:
        read_plan(path)
    assert part in refused.value.parts


def test_who_means_an_edit_says_so(path: Path) -> None:
    edit(path, lambda whole: whole["plan"]["queues"][1].update(target=5))
    assert read_plan(path, is_edit_accepted=True).queues[1].target == 5


@pytest.mark.parametrize("target", [-1, 91])
def test_an_accepted_edit_must_still_be_possible(path: Path, target: int) -> None:
    edit(path, lambda whole: whole["plan"]["queues"][1].update(target=target))
    with pytest.raises(ResetRefused, match=r"target -?\d+ of a:1 is outside \[0, 90\]"):
        read_plan(path, is_edit_accepted=True)


def test_an_accepted_edit_must_not_name_a_queue_twice(path: Path) -> None:
    edit(path, lambda whole: whole["plan"]["queues"].append(whole["plan"]["queues"][0]))
    with pytest.raises(ResetRefused, match="names a queue twice"):
        read_plan(path, is_edit_accepted=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no json", "is no plan"),
        ("{}", "is no plan"),
        ('{"kind":"bread","version":1,"digests":{},"plan":{}}', "is no plan but 'bread'"),
        ('{"kind":"tanist offset reset plan","version":2,"digests":{},"plan":{}}', "is of version 2"),
        (
            '{"kind":"tanist offset reset plan","version":1,"digests":{},"plan":{"queues":7}}',
            "makes no sense",
        ),
        ('{"kind":"tanist offset reset plan","version":1,"digests":{},"plan":{}}', "makes no sense"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(ResetRefused, match=words):
        read_plan(tmp_path / "x", is_edit_accepted=True)


def test_messages_that_come_again_and_that_are_skipped_are_counted() -> None:
    back, unknown = QUEUES
    assert (back.replayed, back.skipped) == (30, 0)
    assert (unknown.replayed, unknown.skipped) == (0, 0)
    forward = msgspec.structs.replace(back, now=5, target=60)
    # Those before 10 are deleted: nobody skips them.
    assert (forward.replayed, forward.skipped) == (0, 50)
    broadcast = msgspec.structs.replace(back, now=None, stands={"x": 30, "y": 15, "z": 20})
    assert (broadcast.replayed, broadcast.skipped) == (10, 5)


def test_a_warning_that_many_queues_share_comes_once() -> None:
    queues = [msgspec.structs.replace(QUEUES[0], queue_id=number) for number in range(5)]
    plan = msgspec.structs.replace(PLAN, queues=queues)
    assert plan.all_warnings == ["a:0, a:1, a:2 and 2 more queues: old"]
