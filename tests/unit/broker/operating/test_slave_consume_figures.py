import logging
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tanist.broker.operating.broker_metrics import broker_sampler
from tanist.broker.operating.slave_consume_figures import Alarm, slave_consume_metrics
from tanist.broker.state import BrokerState
from tanist.metrics import OnDemand
from tanist.protocol.bodies.slave_consume import SlaveConsumeStatus
from tests.support.broker_tables import open_state
from tests.support.slave_consume_views import (
    PlayedView,
    reading_slave,
    serving_master,
    switch_entry,
    waiting_master,
)


@pytest.fixture
def state(tmp_path: Path) -> BrokerState:
    state = open_state(tmp_path)
    with state.store:
        return state


def figures(state: BrokerState, status: SlaveConsumeStatus | None) -> dict[str, float]:
    state.slave_consume = None if status is None else PlayedView(status)
    registry = CollectorRegistry()
    registry.register(OnDemand(lambda: slave_consume_metrics(broker_sampler(state), state)))
    lines = generate_latest(registry).decode().splitlines()
    return {
        line.split("{")[0].removeprefix("tanist_slave_consume_"): float(line.split()[-1])
        for line in lines
        if not line.startswith("#") and "_total" not in line
    }


def counts(state: BrokerState, view: PlayedView) -> dict[str, float]:
    """The counters, by the last of their labels, those that are not 0."""
    state.slave_consume = view
    families = [
        family for family in slave_consume_metrics(broker_sampler(state), state) if family.type == "counter"
    ]
    return {
        list(sample.labels.values())[-1]: sample.value
        for family in families
        for sample in family.samples
        if sample.value
    }


def test_a_broker_without_a_coordinator_has_no_such_figures(state: BrokerState) -> None:
    assert figures(state, None) == {}


def test_a_master_shows_its_permission_and_whether_it_has_given_up(state: BrokerState) -> None:
    assert figures(state, serving_master()) == {"permission": 6, "term": 2, "active": 0, "given_up": 0}
    assert figures(state, serving_master(permission="NONE", given_up="alone")) == {
        "permission": 0,
        "term": 2,
        "active": 0,
        "given_up": 1,
    }


def test_a_slave_that_is_read_shows_that_it_may_be_read(state: BrokerState) -> None:
    assert figures(state, reading_slave()) == {"permission": 4, "term": 3, "active": 1}


@pytest.mark.behaviour("S3-68", "S3-69")
def test_events_and_what_groups_got_twice_are_counters_to_be_alarmed_by(state: BrokerState) -> None:
    status = serving_master(delivered_twice={"billing": 12, "audit": 3})
    view = PlayedView(status, switch_entry(), switch_entry())
    assert counts(state, view) == {"SWITCH": 2, "billing": 12, "audit": 3}


@pytest.mark.behaviour("S3-65")
def test_the_alarm_is_an_error_in_the_log_with_the_way_out(
    state: BrokerState, caplog: pytest.LogCaptureFixture
) -> None:
    state.slave_consume = PlayedView(waiting_master(record=None, given_up="alone"))
    Alarm(state).tell()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "given up: alone" in record.getMessage()
    assert "endSlaveConsume" in record.getMessage()


@pytest.mark.parametrize("status", [None, serving_master()])
def test_without_a_reason_nobody_is_alarmed(
    state: BrokerState, status: SlaveConsumeStatus | None, caplog: pytest.LogCaptureFixture
) -> None:
    state.slave_consume = None if status is None else PlayedView(status)
    Alarm(state).tell()
    assert caplog.records == []
