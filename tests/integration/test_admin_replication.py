"""``tanist admin`` and a pair of brokers: how they stand, and a slave that is filled anew."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tanist.admin.refused import NotThere
from tanist.cli.exit_codes import Exit
from tanist.cli.main import tanist
from tanist.errors import ResponseError
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.registration import RegisterBrokerBody, encode_registration
from tanist.protocol.codes import OUR_VERSION
from tanist.protocol.headers.nameserver import RegisterBrokerRequest
from tanist.protocol.headers.sync import RebuildSlaveRequest
from tanist.protocol.response_errors import NoPermission
from tanist.testing import EmbeddedBroker
from tests.support.acl import KEY, PLAIN_ACL, SECRET
from tests.support.attacked import Master
from tests.support.ha_pair import FILE_BYTES, GROUP, running_master, running_pair, running_slave
from tests.support.ha_pair import SECRET as HA_SECRET
from tests.support.relay import Relay
from tests.support.requests import pull_request, send_request
from tests.support.rocketmq.cluster import free_port
from tests.support.site import wait_until
from tests.support.wire import Wire


def admin(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(tanist, ["admin", *arguments], input=answer)


def ha_status(address: str) -> dict[str, Any]:
    shown = admin("haStatus", "-b", address, "--json")
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)["haStatus"]


def send(address: str, body: bytes) -> None:
    with Wire(address) as wire:
        answer = wire.ask(send_request(body))
        assert answer.code == ResponseCode.SUCCESS, answer.remark


def read(address: str) -> bytes:
    with Wire(address) as wire:
        return bytes(wire.ask(pull_request()).body)


def test_both_sides_tell_how_they_stand() -> None:
    with running_pair() as pair:
        send(pair.master.address, b"first")
        master, slave = ha_status(pair.master.address), ha_status(pair.slave.address)
        text_of_master = admin("haStatus", "-b", pair.master.address).output
        text_of_slave = admin("haStatus", "-b", pair.slave.address).output
    (seen,) = master["haConnectionInfo"]
    assert (master["role"], master["authentication"], master["inSyncSlaveNums"]) == (
        "SYNC_MASTER",
        "secret",
        1,
    )
    assert (seen["brokerId"], seen["dialect"], seen["diff"], seen["counts"]) == (1, "tanist", 0, True)
    assert seen["slaveAckOffset"] == master["masterCommitLogMaxOffset"] > 0
    client = slave["haClientRuntimeInfo"]
    assert (slave["role"], client["state"], client["lagBytes"]) == ("SLAVE", "transfer", 0)
    assert client["maxOffset"] == master["masterCommitLogMaxOffset"]
    assert "1 of 1 slaves in step" in text_of_master
    assert "state: transfer" in text_of_slave


def test_a_master_without_slaves_says_that_the_lag_is_unknown() -> None:
    with running_master() as master:
        shown = admin("haStatus", "-b", master.address)
    assert shown.exit_code == 0
    assert "the lag is unknown" in shown.output


@pytest.mark.parametrize("arguments", [(), ("-b", "a:1", "-c", "C"), ("-c", "C")])
def test_whom_to_ask_must_be_clear(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    assert admin("haStatus", *arguments).exit_code == 2


def test_a_master_is_not_rebuilt() -> None:
    with running_master() as master:
        refused = admin("rebuildSlave", "-b", master.address, "--yes")
        with Wire(master.address) as wire:
            header = RebuildSlaveRequest(broker_name=GROUP, broker_id=0)
            answer = wire.ask(Command.request(RequestCode.REBUILD_SLAVE, header))
    assert refused.exit_code == 1
    assert "is a master" in refused.output
    assert answer.code == ResponseCode.NO_PERMISSION


def other_log(store: Path) -> None:
    """What a slave has left that followed another master."""
    with running_master({"brokerRole": "ASYNC_MASTER"}, store=store) as other:
        for number in range(3):
            send(other.address, b"of another master %d" % number)
        # A first pull makes its group, which a slave does not.
        read(other.address)


def is_refused(slave: Master) -> bool:
    return bool(ha_status(slave.address)["haClientRuntimeInfo"]["refused"])


def test_a_slave_with_another_log_is_refused_and_then_filled_anew(tmp_path: Path) -> None:
    other_log(tmp_path)
    with (
        running_master({"brokerRole": "ASYNC_MASTER"}) as master,
        Relay(master.ha_address) as cable,
        running_slave(cable, store=tmp_path) as slave,
    ):
        send(master.address, b"of this master")
        read(master.address)
        wait_until(lambda: is_refused(slave))
        assert b"of another master" in read(slave.address)
        assert "refused by the master" in admin("haStatus", "-b", slave.address).output

        kept = admin("rebuildSlave", "-b", slave.address, answer="n\n")
        assert kept.exit_code == 1
        assert "Its master does not take it" in kept.output
        assert b"of another master" in read(slave.address)

        done = admin("rebuildSlave", "-b", slave.address, answer="y\n")
        assert done.exit_code == 0, done.output
        assert "in step at" in done.output
        wait_until(lambda: b"of this master" in read(slave.address))
        assert b"of another master" not in read(slave.address)
        assert not list(tmp_path.glob("aside-*"))
        send(master.address, b"and on")
        wait_until(lambda: b"and on" in read(slave.address))


def test_a_rebuild_names_the_replica_that_is_meant() -> None:
    with running_pair() as pair, Wire(pair.slave.address) as wire:
        header = RebuildSlaveRequest(broker_name=GROUP, broker_id=2)
        answer = wire.ask(Command.request(RequestCode.REBUILD_SLAVE, header))
        assert answer.code == ResponseCode.INVALID_PARAMETER


def test_a_slave_that_knows_no_master_is_not_rebuilt() -> None:
    alone = {"brokerRole": "SLAVE", "brokerId": "1"}
    with EmbeddedBroker(settings=alone) as slave:
        refused = admin("rebuildSlave", "-b", slave.address, "--yes")
        shown = admin("haStatus", "-b", slave.address)
    assert refused.exit_code == 1
    assert isinstance(refused.exception, ResponseError)
    assert "no master is known" in str(refused.exception)
    assert "master: unknown" in shown.output


def test_a_slave_keeps_its_log_while_its_master_does_not_answer() -> None:
    with running_master({"brokerRole": "ASYNC_MASTER"}) as master, Relay(master.ha_address) as cable:
        cable.cut()
        with running_slave(cable) as slave:
            refused = admin("rebuildSlave", "-b", slave.address, "--yes")
            assert "does not answer" in str(refused.exception)
            cable.mend()
            master.wait_in_step()
            done = admin("rebuildSlave", "-b", slave.address, "--yes")
            assert done.exit_code == 0, done.output


def test_a_cluster_is_shown_broker_by_broker() -> None:
    with EmbeddedBroker() as broker:
        shown = admin("haStatus", "-n", broker.namesrv, "-c", "DefaultCluster")
        as_json = admin("haStatus", "-n", broker.namesrv, "-c", "DefaultCluster", "--json")
        unknown = admin("haStatus", "-n", broker.namesrv, "-c", "Elsewhere")
    assert f"embedded id 0 ASYNC_MASTER at {broker.address}" in shown.output
    (told,) = json.loads(as_json.output)
    assert told["brokerAddr"] == broker.address
    assert isinstance(unknown.exception, NotThere)
    assert "DefaultCluster" in str(unknown.exception)


def test_a_name_server_that_is_gone_is_passed_over_and_a_broker_that_is_gone_is_told(tmp_path: Path) -> None:
    gone = f"127.0.0.1:{free_port()}"
    wanted = ("-g", "readers", "-t", "OrderTopic", "--to", "earliest", "-o", str(tmp_path / "plan.json"))
    header = RegisterBrokerRequest(
        broker_name="gone", broker_addr=gone, cluster_name="DefaultCluster", ha_server_addr=gone, broker_id=0
    )
    # Kept open: a broker whose connection ends is forgotten.
    with EmbeddedBroker(topics={"OrderTopic": 1}) as broker, Wire(broker.namesrv) as wire:
        both = ("-n", f"{gone};{broker.namesrv}")
        body = encode_registration(RegisterBrokerBody(), is_compressed=False, version=OUR_VERSION)
        registered = wire.ask(Command.request(RequestCode.REGISTER_BROKER, header, body=body)).code
        shown = admin("haStatus", *both, "-c", "DefaultCluster", "--json")
        orders = admin("resetOffset", "list", *both, "--json")
        planned = admin("resetOffset", "plan", *both, *wanted)
    assert registered == ResponseCode.SUCCESS
    assert shown.exit_code == orders.exit_code == Exit.PARTLY, (shown.output, orders.output)
    assert {each["brokerAddr"]: "failure" in each for each in json.loads(shown.stdout)} == {
        broker.address: False,
        gone: True,
    }
    assert list(json.loads(orders.stdout)["failures"]) == ["gone"]
    assert "readers" in str(planned.exception)


def test_with_access_rules_only_an_admin_rebuilds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(PLAIN_ACL)
    with running_master({"brokerRole": "ASYNC_MASTER"}) as master:
        guarded = {
            "brokerRole": "SLAVE",
            "brokerId": "1",
            "haSecret": HA_SECRET,
            "haMasterAddress": master.ha_address,
            "mappedFileSizeCommitLog": str(FILE_BYTES),
            "aclEnable": "true",
            "aclConfigPath": str(rules),
        }
        with EmbeddedBroker(settings=guarded) as slave:
            master.wait_in_step()
            results = [admin("rebuildSlave", "-b", slave.address, "--yes")]
            monkeypatch.setenv("TANIST_SECRET_KEY", SECRET)
            for key in (KEY, "operator-key"):
                monkeypatch.setenv("TANIST_ACCESS_KEY", key)
                results.append(admin("rebuildSlave", "-b", slave.address, "--yes"))
    assert [type(result.exception) for result in results] == [NoPermission, NoPermission, type(None)]
