"""The last act of ``tanist demo``, archive and audit, as its commands do it, but for a session of Spark."""

import asyncio
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tanist.admin.asking import asking
from tanist.cli import spark_archive, spark_audit, story_acts
from tanist.cli.main import tanist as command
from tanist.cli.story import TOPIC, Stage, Verdict
from tanist.cli.story_acts import archive_and_audit
from tanist.client import Message, Producer
from tanist.spark.archive.job import Pause, end_when_done
from tanist.spark.running import Workers, in_turn
from tanist.testing import EmbeddedBroker
from tanist.up.plan import Mode
from tests.support.up_process import free_ports

COUNT = 20


@pytest.fixture(autouse=True)
def without_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands do their parts themselves, one after the other, in this process."""

    @contextmanager
    def workers(*_given: object, **_options: object) -> Generator[Workers]:
        yield Workers(None, in_turn, 1)  # pyright: ignore[reportArgumentType]

    async def run(*arguments: str | Path) -> tuple[int, str]:
        done = await asyncio.to_thread(CliRunner().invoke, command, [str(each) for each in arguments])
        return done.exit_code, done.stdout or f"{done.output} {done.exception!r}"

    monkeypatch.setattr(spark_archive, "spark_workers", workers)
    monkeypatch.setattr(spark_audit, "spark_workers", workers)

    def pause(**_options: object) -> Pause:
        return end_when_done

    # A thread may not say what signals do.
    monkeypatch.setattr(spark_archive, "_pause", pause)
    monkeypatch.setattr(story_acts, "tanist", run)


async def play(home: Path, *, is_damaged: bool = False) -> list[Verdict]:
    """The act over a broker, with two copies of its store in the place of replicas."""
    async with EmbeddedBroker(topics={TOPIC: 2}, store=home / "store") as broker, asking() as wire:
        async with Producer(group="story", namesrv=broker.namesrv) as producer:
            for number in range(COUNT):
                await producer.send(Message(TOPIC, b"%d" % number))
        up = Stage(home, Mode.AUTO_SWITCH, free_ports())
        up.name_server, up.brokers = broker.namesrv, (broker.address, broker.address)
        for store in up.stores:
            # A small broker's has another shape than the audit expects.
            shutil.copytree(home / "store", store, ignore=shutil.ignore_patterns("index"))
        if is_damaged:
            (log,) = (up.stores[1] / "commitlog").iterdir()
            with log.open("r+b") as file:
                file.seek(100)
                file.write(b"\xff")
        return await archive_and_audit(up, wire, home, lambda _text: None)


def test_what_the_archive_and_the_audit_say_is_understood(tmp_path: Path) -> None:
    archived, equal = asyncio.run(play(tmp_path))
    assert (archived.measured, archived.is_kept) == (f"{COUNT} of {COUNT}", True)
    size, _, words = equal.measured.partition(" ")
    assert (words, equal.is_kept) == ("bytes are equal", True)
    assert int(size) > COUNT


def test_replicas_that_differ_and_commands_that_fail_are_promises_not_kept(tmp_path: Path) -> None:
    # What is in the way of the archive is a file.
    (tmp_path / "archive").touch()
    archived, equal = asyncio.run(play(tmp_path, is_damaged=True))
    assert (archived.is_kept, equal.is_kept) == (False, False)
    assert "Not a directory" in archived.measured
    assert equal.measured
