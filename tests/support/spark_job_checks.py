"""What the commands of ``tanist spark`` do in a real Spark: checks for the session of ``test_spark``."""

import json
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock, patch

import msgspec
from click.testing import CliRunner, Result

from tanist.check import Began, Ended, Event, Fault, Held, Log, Outcome, Read
from tanist.check.history import encode_event, order_of
from tanist.cli.main import tanist
from tanist.spark.archive.folder import ArchiveFolder
from tanist.spark.lag.samples import append_samples, read_samples
from tanist.sync import Consumer, Credentials, Message, Producer, Start
from tanist.testing import EmbeddedBroker
from tests.support.acl import SECRET
from tests.support.log_lines import LogLines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = "operator"
ACL = f"accounts:\n  - accessKey: {KEY}\n    secretKey: {SECRET}\n    admin: true\n"
ACCESS = {"TANIST_ACCESS_KEY": KEY, "TANIST_SECRET_KEY": SECRET}
COUNT = 12


def every_job_reaches_a_broker_that_has_access_rules(spark: "SparkSession", folder: Path) -> None:
    """And tells how far it is, and logs what it read and wrote."""
    with guarded(folder) as broker, kept(spark), LogLines("tanist.spark") as logged:
        archive, namesrv = str(folder / "guarded"), broker.namesrv
        refused = run("archive", "-n", namesrv, "--topics", "Orders", "--to", archive, "--once", env={})
        assert "accessKey" in str(refused.exception)
        archived = told("archive", "-n", namesrv, "--topics", "Orders", "--to", archive, "--once")
        assert archived["rows"] == COUNT
        assert logged.count(f"archived batch=0 rows={COUNT} bytes={archived['bytes']} ") == 1
        store = str(folder / "guarded-store")
        assert (
            told("audit", store, "--namesrv", namesrv, progress="parts; 0 parts left")["comparedMessages"]
            == COUNT
        )
        assert logged.count(f"audited store={store} messages={COUNT} read_bytes=") == 1

        until = datetime.now(UTC).isoformat()
        asked = ("-n", namesrv, "-t", "Orders", "--from", "2026-01-01", "--until", until, "--to", "Again")
        replayed = told("replay", archive, *asked, "--apply")
        assert replayed["rows"] == COUNT
        done = f"replay is done id={replayed['replayId']} read_rows={COUNT} written_rows={COUNT} "
        assert logged.count(done) == 1
        again = told("dedup", "-n", namesrv, "-t", "Again", "--to", "Clean")
        assert (again["rows"], again["kept"], again["writtenTo"]) == (COUNT, COUNT, "Clean")
        assert logged.count(f"repeats dropped rows={COUNT} kept={COUNT}") == 1
        books = told("ledger", "-n", namesrv, "-t", "Orders", "-g", "billing")
        assert books["groups"][0]["consumed"] == COUNT
        assert logged.count("ledger is done read_rows=") == 1

        samples = folder / "samples.jsonl"
        assert run("lag", "collect", "-n", namesrv, "--to", str(samples), "--count", "1").exit_code == 0
        assert any(json.loads(line)["group"] == "billing" for line in samples.read_text().splitlines())
        # Only an archive would be read by Spark for a plan: there is no progress to tell.
        asked = ("-n", namesrv, "--to", "-2h", "-g", "billing", "-o", str(folder / "plans"))
        plans = told("reset-plan", *asked, progress="")
        assert [plan["topic"] for plan in plans["plans"]] == ["Orders"]
        expired = {("Orders", broker.broker_name, queue): 2 for queue in (0, 1)}
        with patch("tanist.spark.reset_plan.expired_queues", Mock(return_value=expired)):
            plans = told("reset-plan", *asked, "--archive", archive)
        assert [one["rows"] for plan in plans["plans"] for one in plan["onlyArchived"]] == [2, 2]
        assert logged.count(f"reset-plan is done read_rows={COUNT} read_bytes=") == 1
        assert logged.count("plans written count=1 folder=") == 2

        begun = [msgspec.structs.replace(one, at_ms=1, consumer_offset=0) for one in read_samples(samples)]
        append_samples(samples, begun)
        late = told("lag", "report", str(samples), "--archive", archive, "--html", str(folder / "lag.html"))
        assert [one["messages"] for one in late["latencies"]] == [COUNT]
        assert logged.count(f"lag is done read_rows={COUNT} read_bytes=") == 1


def an_archive_that_is_told_to_end_finishes_its_batch_and_goes_on_later(
    spark: "SparkSession", folder: Path
) -> None:
    root, commit = str(folder / "stopped"), ArchiveFolder.commit

    def commit_late(*given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return commit(*given)

    with EmbeddedBroker(topics={"Orders": 2}) as broker, kept(spark), handlers_restored():
        with Producer(group="test", namesrv=broker.namesrv) as producer:
            for number in range(40):
                producer.send(Message("Orders", f"message {number}".encode()))
        asked = ("archive", "-n", broker.namesrv, "--topics", "Orders", "--to", root)
        with patch.object(ArchiveFolder, "commit", commit_late):
            stopped = told(*asked, "--batch-messages", "12")
        rest = told(*asked, "--once")
        assert (stopped["batches"], stopped["rows"], rest["rows"]) == (1, 12, 28)

        listed = told("archive", "list", root, progress="")
        compacted = told("archive", "compact", root)
        assert (compacted["filesBefore"], compacted["filesAfter"]) == (listed["files"], 1)
        again = told("archive", "list", root, progress="")
        assert (listed["rows"], again["rows"], again["files"]) == (40, 40, 1)
        assert all(queue["ranges"] == [[0, 20]] and not queue["gaps"] for queue in again["queues"])


@contextmanager
def handlers_restored() -> Generator[None]:
    """A command handles signals in this process; before it does they are none of ours."""

    def refuse(number: int, _frame: object) -> None:
        raise AssertionError(f"nobody waits for signal {number}")

    before = [(number, signal.signal(number, refuse)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def a_history_is_judged_as_one_process_judges_it(spark: "SparkSession", folder: Path) -> None:
    history = folder / "history"
    history.mkdir()
    events = sorted(a_history_with_faults(), key=order_of)
    for number in (0, 1):
        lines = b"".join(encode_event(event) for event in events[number::2])
        (history / f"{number}.jsonl").write_bytes(lines)
    with kept(spark):
        ours = run("check", str(history), "--json")
    theirs = CliRunner().invoke(tanist, ["check", str(history), "--json"])

    assert (ours.exit_code, theirs.exit_code) == (1, 1), ours.output
    (found,), (wanted,) = json.loads(ours.stdout).values(), json.loads(theirs.stdout).values()
    for verdict in (found, wanted):
        verdict["anomalies"].sort(key=str)
    assert found == wanted
    assert "messages" in ours.stderr


def a_history_with_faults() -> Generator[Event]:
    """Sends to three queues; of some one is lost, one is read twice, and one was never sent."""
    for number in range(60):
        queue, offset, at_us = f"q-{number % 3}", number // 3, 100 * number
        yield Began(at_us, "p", f"p/{number}")
        yield Ended(at_us + 1, "p", f"p/{number}", Outcome.OK, queue, offset)
        yield Read(at_us + 2, "c", "g", queue, offset, f"p/{number}")
        if number != 30:
            yield Held(90_000, "a", queue, offset, f"p/{number}")
    yield Read(50_000, "c", "g", "q-1", 3, "p/10")
    yield Held(90_000, "a", "q-2", 20, "x/1")
    yield Fault(20_000, "kill")
    for queue in range(3):
        yield Log(90_001, "a", f"q-{queue}", 0, 20 + (queue == 2), is_master=True)


@contextmanager
def guarded(folder: Path) -> Generator[EmbeddedBroker]:
    """A broker with access rules, some messages, and a group that has read them."""
    rules = folder / "plain_acl.yml"
    rules.write_text(ACL)
    topics = dict.fromkeys(("Orders", "Again", "Clean"), 2)
    settings = {"aclEnable": "true", "aclConfigPath": str(rules)}
    with EmbeddedBroker(topics=topics, settings=settings, store=folder / "guarded-store") as broker:
        credentials = Credentials(KEY, SECRET)
        with Producer(group="test", namesrv=broker.namesrv, credentials=credentials) as producer:
            for number in range(COUNT):
                producer.send(Message("Orders", f"message {number}".encode()))
        read_all(broker.namesrv, credentials)
        yield broker


def read_all(namesrv: str, credentials: Credentials) -> None:
    consumer = Consumer(
        group="billing",
        topics={"Orders": "*"},
        start=Start.FIRST,
        namesrv=namesrv,
        credentials=credentials,
    )
    with consumer:
        # A message is acknowledged when the next one is asked for, or when the block ends.
        for _ in zip(range(COUNT), consumer, strict=False):
            pass


@contextmanager
def kept(spark: "SparkSession") -> Generator[None]:
    """Commands take the session that is there, and do not stop it: to start another takes long."""
    with patch.object(type(spark), "stop", _do_nothing):
        yield


def _do_nothing(_session: object) -> None:
    pass


def run(*words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(tanist, ["spark", *words], env=ACCESS if env is None else env)


def told(*words: str, progress: str = "/s") -> Any:
    """What a command that comes to a good end tells as JSON, once it has told how far it came."""
    result = run(*words, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    assert progress in result.stderr
    assert SECRET not in result.output
    return json.loads(result.stdout)


JOB_CHECKS: tuple[Callable[["SparkSession", Path], None], ...] = (
    every_job_reaches_a_broker_that_has_access_rules,
    an_archive_that_is_told_to_end_finishes_its_batch_and_goes_on_later,
    a_history_is_judged_as_one_process_judges_it,
)
