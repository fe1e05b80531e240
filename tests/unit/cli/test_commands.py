"""The commands of ``tanist admin`` as a whole: their shape, what they show, their reference."""

import io
import json
import runpy
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from tanist.admin.asking import Access
from tanist.admin.parallel import Told
from tanist.admin.rows import Row
from tanist.cli.admin import SUBJECTS, admin
from tanist.cli.commanding import Asker, command
from tanist.cli.exit_codes import Exit
from tanist.cli.main import tanist
from tanist.cli.shown import Shown, done_at, listing, print_shown
from tanist.errors import ConnectFailed

ROOT = Path(__file__).parents[3]
COMMANDS = [each for subject in SUBJECTS for each in subject.COMMANDS]


class _Row(Row, frozen=True, kw_only=True):
    broker_name: str
    is_alive: bool
    seen_at_ms: int
    rate: float | None


def walked(group: click.Group) -> list[click.Command]:
    """All commands within a group that are no groups themselves."""
    found: list[click.Command] = []
    for each in group.commands.values():
        found += walked(each) if isinstance(each, click.Group) else [each]
    return found


def test_the_reference_is_current() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "reference_commands.py"))["page"]
    is_current = (ROOT / "docs" / "reference" / "commands.md").read_text() == page()
    assert is_current, "run python scripts/reference_commands.py"


def test_every_command_has_json_and_help() -> None:
    for each in COMMANDS:
        if each.hidden or isinstance(each, click.Group):
            continue
        options = [option for parameter in each.params for option in parameter.opts]
        assert "--json" in options, each.name
        assert each.help, each.name
        assert len(options) == len(set(options)), each.name


def test_no_name_is_used_twice() -> None:
    assert len({each.name for each in COMMANDS}) == len(COMMANDS) == len(admin.commands)


def test_rows_are_json_and_a_table_with_times_and_words() -> None:
    shown = listing([_Row(broker_name="b[0]", is_alive=True, seen_at_ms=1_000, rate=None)], _Row)
    written = io.StringIO()
    print_shown(shown, Console(width=40, file=written))
    text = written.getvalue().replace("\n", "")
    assert "broker name" in text
    assert "b[0]" in text
    assert "1970-01-01T00:00:01.000+00:00" in text
    assert "yes" in text


def test_an_order_that_some_brokers_refuse_tells_which_and_ends_with_a_code_of_its_own() -> None:
    refused: Told[None] = Told("b:2", None, ConnectFailed("b:2", "refused"))
    shown = done_at([Told[None]("a:1", None), refused], "done")
    assert shown.exit_code is Exit.PARTLY
    assert shown.parts[0] == "a:1: done"
    assert "b:2: cannot connect to b:2: refused" in str(shown.parts[1])
    assert done_at([refused], "done").exit_code is Exit.NO_ANSWER


def test_a_command_repeats_with_i_unless_that_is_taken() -> None:
    @command("free", repeats=True)
    async def free(ask: Asker) -> Shown:
        """Help."""
        del ask
        return Shown({}, [])

    @command("taken", click.option("-i", "--index"), repeats=True)
    async def taken(ask: Asker, *, index: str | None) -> Shown:
        """Help."""
        del ask, index
        return Shown({}, [])

    names = [[each.opts for each in made.params if each.name == "interval_s"] for made in (free, taken)]
    assert names == [[["-i", "--interval"]], [["--interval"]]]


def test_a_command_that_is_repeated_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    @command("watch", repeats=True)
    async def watch(ask: Asker) -> Shown:
        """Help."""
        asked.append(ask.is_repeated)
        if len(asked) == 1:
            raise ConnectFailed("b:2", "refused")
        return Shown({"look": len(asked)}, [])

    def pause(_seconds: int) -> None:
        if len(asked) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("tanist.cli.commanding.time.sleep", pause)
    done = CliRunner().invoke(watch, ["-i", "1", "--json"], obj=Access())
    assert done.stdout.splitlines() == ['{"look":2}', '{"look":3}']
    assert done.stderr.startswith("tanist: cannot connect to b:2")
    assert asked == [True, True, True]


def test_what_only_looks_can_be_repeated() -> None:
    looking = [
        each
        for each in walked(admin)
        if not each.hidden and (each.help or "").startswith(("Show ", "Ask ", "Compare ", "Tell "))
    ]
    assert len(looking) > 30
    for each in looking:
        assert any("--interval" in parameter.opts for parameter in each.params), each.name


@pytest.mark.parametrize(
    "words",
    [
        ["topicList"],
        ["brokerStatus"],
        ["brokerStatus", "-b", "a:1", "-c", "C"],
        ["getBrokerEpoch", "-n", "a:1"],
    ],
)
def test_what_makes_no_sense_is_a_usage_error(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def asking(_access: object) -> AsyncGenerator[None]:
        yield None

    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.setattr("tanist.cli.asked.asking", asking)
    assert CliRunner().invoke(tanist, ["admin", *words]).exit_code == Exit.USAGE


def test_what_tanist_has_not_is_refused_in_one_line_whatever_its_flags() -> None:
    result = CliRunner().invoke(tanist, ["admin", "updateStaticTopic", "-qn", "8", "-t", "T", "-c", "C"])
    assert result.exit_code == Exit.NOT_SUPPORTED
    assert result.stderr.count("\n") == 1
    assert "updateTopic" in result.stderr
    assert json.dumps(result.stdout) == '""'


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tanist ad", {"admin"}),
        ("tanist admin getN", {"getNamesrvConfig"}),
        ("tanist admin resetOffset pr", {"preview"}),
        ("tanist up --mode fix", {"fixed-roles"}),
    ],
)
def test_a_shell_is_offered_what_can_follow(line: str, offered: set[str]) -> None:
    place = str(len(line.split()) - 1)
    asked = {"_TANIST_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": place}
    done = CliRunner().invoke(tanist, [], env=asked, prog_name="tanist")
    assert {each.partition(",")[2] for each in done.stdout.split()} == offered
