from io import StringIO

from rich.console import Console

from tanist.admin.parallel import Told
from tanist.cli.ha_views import print_status, to_value
from tanist.errors import ConnectFailed
from tanist.model.offsets import LogOffset
from tanist.protocol.bodies.replication import (
    ControlledView,
    HAClientView,
    HAConnectionView,
    HARefusedView,
    HARuntimeInfo,
)


def shown(status: HARuntimeInfo) -> str:
    text = StringIO()
    print_status(Console(file=text, width=80), Told("127.0.0.1:10911", status))
    return text.getvalue()


def test_a_master_shows_its_slaves_and_who_was_refused_and_why() -> None:
    text = shown(
        HARuntimeInfo(
            is_master=True,
            log_end=LogOffset(100),
            broker_name="broker-a",
            broker_id=0,
            role="SYNC_MASTER",
            authentication="none",
            slaves=[
                HAConnectionView(addr="10.0.0.1:5", acked_to=LogOffset(90), lag_bytes=10, is_in_sync=False)
            ],
            refused=[HARefusedView(addr="10.0.0.66:7", reason="[no] hello", received="3939", at_ms=1)],
            refused_counts={"no hello": 12},
        )
    )
    assert "broker-a id 0 SYNC_MASTER at 127.0.0.1:10911" in text
    assert "0 of 1 slaves in step, authentication none" in text
    # What a slave of RocketMQ does not tell is unknown.
    (row,) = (line for line in text.splitlines() if "10.0.0.1:5" in line)
    assert row.split()[:4] == ["10.0.0.1:5", "unknown", "90", "10"]
    assert "12 x no hello" in text
    assert "10.0.0.66:7 [no] hello (received 3939)" in text


def test_an_address_in_brackets_is_shown_as_it_is() -> None:
    slave = HAConnectionView(addr="[fd00::7]:5", acked_to=LogOffset(0), lag_bytes=0, is_in_sync=True)
    text = shown(HARuntimeInfo(is_master=True, broker_name="[bold]", slaves=[slave]))
    assert "[fd00::7]:5" in text
    assert "[bold] id" in text


def test_nothing_is_left_out_in_a_narrow_terminal() -> None:
    slave = HAConnectionView(
        addr="[2001:db8::17]:45678",
        acked_to=LogOffset(1 << 40),
        lag_bytes=1 << 40,
        is_in_sync=False,
        sent_from=LogOffset(1 << 40),
    )
    text = shown(HARuntimeInfo(is_master=True, slaves=[slave]))
    (row,) = (line for line in text.splitlines() if "2001" in line)
    assert row.split()[0] == slave.addr
    assert row.split().count(str(1 << 40)) == 3
    assert "…" not in text


def test_who_is_refused_again_and_again_for_the_same_reason_is_shown_once() -> None:
    refused = [
        HARefusedView(addr=f"10.0.0.{host}:{port}", reason="not proven", received="", at_ms=port)
        for port in (1, 2, 3)
        for host in (1, 2)
    ]
    lines = shown(HARuntimeInfo(is_master=True, refused=refused)).splitlines()
    assert [line.split()[1] for line in lines if "not proven" in line] == ["10.0.0.1:3", "10.0.0.2:3"]


def test_a_slave_that_is_refused_says_so_and_why_and_knows_no_lag() -> None:
    client = HAClientView(is_refused=True, state="pausing", reason="OTHER_INCARNATION", aside_count=1)
    text = shown(HARuntimeInfo(is_master=False, role="SLAVE", client=client))
    assert "state: refused by the master" in text
    assert "why: OTHER_INCARNATION" in text
    assert "lag: unknown" in text
    assert "old logs kept: 1" in text


def test_a_broker_of_rocketmq_is_shown_with_what_it_tells() -> None:
    text = shown(HARuntimeInfo(is_master=True))
    assert text.startswith("master at 127.0.0.1:10911")
    assert "the lag is unknown" in text


def test_a_broker_that_does_not_answer_is_shown_with_the_reason() -> None:
    text = StringIO()
    told: Told[HARuntimeInfo] = Told("a:1", None, ConnectFailed("a:1", "[refused]"))
    print_status(Console(file=text), told)
    assert text.getvalue() == "a:1 does not answer: cannot connect to a:1: [refused]\n"
    assert to_value(told) == {
        "brokerAddr": "a:1",
        "haStatus": None,
        "failure": "cannot connect to a:1: [refused]",
    }


def test_a_master_under_a_controller_shows_its_set_its_lease_and_why_it_takes_nothing() -> None:
    controlled = ControlledView(
        state="running",
        controller="10.0.0.9:9878",
        replica_id=3,
        role="master",
        epoch=7,
        confirmed_to=LogOffset(90),
        sync_state_set=[2, 3],
        counted=[1, 2, 3],
        set_epoch=12,
        lease_ms=0,
        reasons=["LEASE_EXPIRED: no controller has answered for 4.0 s"],
    )
    text = shown(HARuntimeInfo(is_master=True, controlled=controlled))
    assert "replica 3, master of epoch 7, running, controller 10.0.0.9:9878" in text
    assert "sync state set {2, 3} of epoch 12, being changed: {1, 2, 3} are waited for" in text
    assert "confirmed to 90, lease 0 ms" in text
    assert "why: LEASE_EXPIRED" in text


def test_a_slave_under_a_controller_shows_what_is_confirmed_and_no_lease() -> None:
    controlled = ControlledView(state="running", role="slave", epoch=7, confirmed_to=LogOffset(90))
    text = shown(HARuntimeInfo(is_master=False, controlled=controlled))
    assert "replica unknown, slave of epoch 7, running, controller unknown" in text
    assert "confirmed to 90" in text
    assert "lease" not in text
