from pathlib import Path

import msgspec

from tanist.admin.resets.plan import Plan, PlannedQueue
from tanist.admin.resets.plan_file import read_plan
from tanist.spark.reset_plan import Archived, OnlyArchived, expired_queues, write_plans

AT_MS = 1_700_000_000_000


def plan(*queues: PlannedQueue) -> Plan:
    return Plan(
        plan_id="20231114-221320-abc",
        created_ms=AT_MS + 10_000,
        created_by="ann",
        name_server="127.0.0.1:9876",
        clusters=["c"],
        brokers=["broker-a"],
        topic="Orders",
        group="%odd/billing",
        target="-1h",
        at_ms=AT_MS,
        queues=list(queues),
    )


def queue(queue_id: int, min_offset: int, oldest_ms: int | None) -> PlannedQueue:
    return PlannedQueue(
        broker_name="broker-a",
        queue_id=queue_id,
        now=90,
        min_offset=min_offset,
        max_offset=100,
        target=min_offset,
        oldest_ms=oldest_ms,
    )


def test_a_queue_is_expired_if_the_time_lies_before_what_is_kept() -> None:
    made = plan(
        queue(0, 50, AT_MS + 5000), queue(1, 50, AT_MS - 1), queue(2, 0, AT_MS + 1), queue(3, 100, None)
    )

    assert expired_queues([made], AT_MS) == {("Orders", "broker-a", 0): 50, ("Orders", "broker-a", 3): 100}


def test_a_plan_file_says_what_only_the_archive_has_and_is_taken_as_it_is(tmp_path: Path) -> None:
    made = plan(queue(0, 50, AT_MS + 5000), queue(1, 0, AT_MS - 1))
    archived = {("Orders", "broker-a", 0): Archived(first=20, end=50, rows=28)}

    (written,) = write_plans([made], tmp_path / "plans", archived, archive=Path("/archive"), at_ms=AT_MS)

    assert written.only_archived == [
        OnlyArchived(broker="broker-a", queue_id=0, first=20, end=50, rows=28, missing=2)
    ]
    assert written.replay == (
        "tanist spark replay /archive -n 127.0.0.1:9876 -t Orders --from 2023-11-14T22:13:20.000+00:00 "
        "--until 2023-11-14T22:13:25.000+00:00 --to-group %odd/billing"
    )
    assert written.file == str(tmp_path / "plans" / "_odd_billing@Orders.plan.json")
    read = read_plan(Path(written.file))
    assert read.queues == made.queues
    assert read.warnings == [
        "broker-a:0: 28 messages from 20 to 50 are only in the archive /archive, and 2 of them are nowhere"
    ]


def test_without_an_archive_a_plan_is_what_it_is(tmp_path: Path) -> None:
    made = plan(queue(0, 50, AT_MS + 5000))

    (written,) = write_plans([made], tmp_path, {}, archive=None, at_ms=AT_MS)

    assert (written.only_archived, written.replay) == ([], None)
    assert read_plan(Path(written.file)) == made


def test_plans_whose_names_make_the_same_words_are_two_files(tmp_path: Path) -> None:
    made = [
        msgspec.structs.replace(plan(), group=group, topic=topic)
        for group, topic in (("billing", "eu-orders"), ("billing-eu", "orders"))
    ]

    written = write_plans(made, tmp_path, {}, archive=None, at_ms=AT_MS)

    assert [read_plan(Path(one.file)).group for one in written] == ["billing", "billing-eu"]
