import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tanist.admin.refused import NotThere
from tanist.cli.exit_codes import Exit
from tanist.cli.main import tanist
from tanist.errors import ConfigError, ResponseError
from tanist.model.route import ClusterInfo
from tanist.protocol.codes import ResponseCode
from tests.support.slave_consume_views import (
    GROUP,
    MASTER,
    SLAVE,
    PlayedView,
    PlayedWire,
    following_slave,
    reading_slave,
    route_of,
    serving_master,
    switch_entry,
    waiting_master,
)


class Operator:
    """Runs the command line against brokers that are played."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        monkeypatch.delenv("NAMESRV_ADDR", raising=False)

    def meets(self, *views: PlayedView, route: ClusterInfo | None = None) -> None:
        wire = PlayedWire(*views, route=route)

        @asynccontextmanager
        async def asking(_credentials: object) -> AsyncGenerator[PlayedWire]:
            yield wire

        self._monkeypatch.setattr("tanist.cli.asked.asking", asking)

    def runs(self, *arguments: str, answer: str | None = None) -> Result:
        return CliRunner().invoke(tanist, ["admin", *arguments], input=answer)

    def json(self, *arguments: str) -> Any:
        result = self.runs(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Operator:
    return Operator(monkeypatch)


# slaveConsumeStatus


def test_one_broker_leads_to_the_others_of_its_group(operator: Operator) -> None:
    operator.meets(PlayedView(serving_master()), PlayedView(following_slave()))
    result = operator.runs("slaveConsumeStatus", "-b", SLAVE)
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split() for line in result.stdout.splitlines()}
    assert rows[MASTER][1:6] == ["MASTER", "serving", "FULL", "FULL", "2"]
    assert rows[SLAVE][1:6] == ["SLAVE", "following", "NONE", "READ", "2"]
    assert "link to the master down: does not hold (up)" in result.stdout
    assert "1 of 3 checks" in result.stdout


def test_a_slave_that_is_read_counts_no_checks(operator: Operator) -> None:
    operator.meets(PlayedView(waiting_master()), PlayedView(reading_slave()))
    shown = operator.runs("slaveConsumeStatus", "-b", SLAVE).stdout
    assert "checks" not in shown
    assert "consumed twice at most if it is ended now: 37" in shown


def test_all_brokers_of_a_cluster_are_asked(operator: Operator) -> None:
    operator.meets(PlayedView(reading_slave()), route=route_of(SLAVE))
    result = operator.runs("slaveConsumeStatus", "-c", "pairs", "-n", "127.0.0.1:9876", "--json")
    assert result.exit_code == Exit.PARTLY
    found = json.loads(result.stdout)
    assert [(each["brokerAddr"], each.get("status", {}).get("permission")) for each in found] == [
        (MASTER, None),
        (SLAVE, "READ"),
    ]
    assert "nobody is there" in found[0]["failure"]


@pytest.mark.parametrize("arguments", [(), ("-b", "a:1", "-c", "C"), ("-c", "C")])
def test_whom_to_ask_must_be_clear(arguments: tuple[str, ...], operator: Operator) -> None:
    assert operator.runs("slaveConsumeStatus", *arguments).exit_code == 2


def test_that_nobody_answers_has_its_exit_code(operator: Operator) -> None:
    operator.meets()
    result = operator.runs("slaveConsumeStatus", "-b", MASTER)
    assert result.exit_code == Exit.NO_ANSWER
    assert f"{MASTER} does not answer" in result.output


# slaveConsumeLedger


def test_the_ledger_shows_what_happened_and_what_may_be_consumed_twice(operator: Operator) -> None:
    operator.meets(PlayedView(serving_master(), switch_entry(), switch_entry(term=4, round=2)))
    result = operator.runs("slaveConsumeLedger", "-b", MASTER)
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[1].split()[:5] == ["2023-11-14T22:13:20.000+00:00", "SWITCH", "3", SLAVE, "7"]
    assert lines[1].endswith("the master is gone")
    assert lines[2].split()[2] == "4.2"
    (entry,) = operator.json("slaveConsumeLedger", "-b", MASTER, "--count", "1")["entries"]
    assert (entry["term"], entry["offsets"], entry["conditions"][0]["holds"]) == (
        4,
        {"TopicA@orders": {"0": 90}},
        True,
    )


def test_an_empty_ledger_says_that_it_is(operator: Operator) -> None:
    operator.meets(PlayedView(serving_master()))
    assert "no slave consumption was written down" in operator.runs("slaveConsumeLedger", "-b", MASTER).stdout


# endSlaveConsume


@pytest.mark.behaviour("S3-37")
def test_what_may_be_consumed_twice_is_shown_before_it_is_ended(operator: Operator) -> None:
    view = PlayedView(waiting_master())
    operator.meets(view)
    kept = operator.runs("endSlaveConsume", "-b", MASTER, answer="n\n")
    assert kept.exit_code == 1
    assert view.ended == []
    assert f"Slave {SLAVE} does not answer" in kept.output
    assert kept.output.index("bills: 30 at most") < kept.output.index("orders: 7 at most")

    done = operator.runs("endSlaveConsume", "-b", MASTER, "--reason", "its disk broke", answer="y\n")
    assert done.exit_code == 0, done.output
    assert view.ended == [("its disk broke", False)]
    assert "slave consumption 3 is ended" in done.stdout


def test_a_script_ends_it_without_a_question(operator: Operator) -> None:
    operator.meets(PlayedView(waiting_master()))
    found = operator.json("endSlaveConsume", "-b", MASTER, "--yes")
    assert found["done"] == "slave consumption 3 is ended"
    assert found["duplicatesAtMost"] == {"bills": 30, "orders": 7}


def test_a_slave_that_is_alive_and_read_is_not_passed_over_unless_forced(operator: Operator) -> None:
    view = PlayedView(waiting_master())
    operator.meets(view, PlayedView(reading_slave()))
    refused = operator.runs("endSlaveConsume", "-b", MASTER, "--yes")
    assert refused.exit_code == 1
    assert f"{SLAVE} is alive and is read: it hands back by itself" in refused.output
    assert view.ended == []
    assert operator.runs("endSlaveConsume", "-b", MASTER, "--yes", "--force").exit_code == 0
    assert view.ended == [("", True)]


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (PlayedView(serving_master()), "there is no slave consumption to end"),
        (PlayedView(following_slave(address=MASTER)), "is a slave; ask its master"),
    ],
)
def test_where_there_is_nothing_to_end_nothing_is_asked(
    view: PlayedView, words: str, operator: Operator
) -> None:
    operator.meets(view)
    refused = operator.runs("endSlaveConsume", "-b", MASTER)
    assert refused.exit_code == 1
    assert words in refused.output
    assert "?" not in refused.output


def test_the_masters_own_refusal_is_told(operator: Operator) -> None:
    refusal = ResponseError(ResponseCode.SYSTEM_ERROR, "it is alive in the registry")
    operator.meets(PlayedView(waiting_master(), refusal=refusal))
    assert operator.runs("endSlaveConsume", "-b", MASTER, "--yes").exception is refusal


# why


def test_the_reasons_and_the_way_out_are_told(operator: Operator) -> None:
    operator.meets(PlayedView(waiting_master()))
    result = operator.runs("why", GROUP, "not-readable", "-b", MASTER)
    assert result.exit_code == 0, result.output
    assert f"{GROUP} is not readable" in result.stdout
    assert "since 2023-11-14T22:13:20.000+00:00: the master is gone" in result.stdout
    assert f"way out: start {SLAVE}" in result.stdout


def test_a_name_server_tells_where_a_group_is(operator: Operator) -> None:
    operator.meets(PlayedView(waiting_master()), PlayedView(reading_slave()), route=route_of(SLAVE))
    found = operator.json("why", GROUP, "not-readable", "-n", "127.0.0.1:9876")
    assert found["readers"] == [SLAVE]
    assert [each["brokerAddr"] for each in found["brokers"]] == [MASTER, SLAVE]


def test_a_group_that_no_name_server_knows_is_told_with_the_way_out(operator: Operator) -> None:
    operator.meets()
    result = operator.runs("why", GROUP, "not-readable", "-n", "127.0.0.1:9876")
    assert isinstance(result.exception, NotThere)
    assert "name one with -b" in str(result.exception)
    assert operator.runs("why", GROUP, "not-readable").exit_code == 2


def test_the_registry_tells_where_a_group_is(operator: Operator, tmp_path: Path) -> None:
    coordinator = f"sqlite://{tmp_path}/registry.db"
    operator.runs("assignRoles", "--coordinator", coordinator, "-b", GROUP, "--master", MASTER)
    operator.meets(PlayedView(waiting_master()))
    found = operator.json("why", GROUP, "not-readable", "--coordinator", coordinator)
    assert [each["brokerAddr"] for each in found["brokers"]] == [MASTER, SLAVE]


def test_a_broker_of_another_group_tells_nothing_of_this_one(operator: Operator) -> None:
    operator.meets(PlayedView(serving_master()), PlayedView(following_slave()))
    result = operator.runs("why", "another", "not-readable", "-b", MASTER)
    assert isinstance(result.exception, NotThere)
    assert "no broker of another is known there" in str(result.exception)


# assignRoles


@pytest.mark.behaviour("S3-3")
def test_roles_are_assigned_and_shown_before_and_after(operator: Operator, tmp_path: Path) -> None:
    arguments = ("assignRoles", "--coordinator", f"sqlite://{tmp_path}/registry.db", "-b", GROUP)
    first = operator.runs(*arguments, "--master", MASTER)
    assert first.stdout.splitlines() == ["before: nothing", "now:", f"  MASTER {MASTER} id 0 FULL"]
    found = operator.json(*arguments, "--master", MASTER, "--slave", f"{SLAVE}:2=READ")
    assert len(found["before"]["brokers"]) == 1
    assert found["after"]["brokers"][1] == {
        "address": SLAVE,
        "brokerId": 2,
        "permission": 4,
        "role": "SLAVE",
    }


def test_a_role_that_makes_no_sense_is_refused(operator: Operator, tmp_path: Path) -> None:
    coordinator = f"sqlite://{tmp_path}/registry.db"
    refused = operator.runs("assignRoles", "--coordinator", coordinator, "-b", GROUP, "--master", "nowhere")
    assert isinstance(refused.exception, ConfigError)
    assert not (tmp_path / "registry.db").exists()
