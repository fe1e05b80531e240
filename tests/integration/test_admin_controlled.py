"""``tanist admin`` and a group under a controller: who leads, who is in step, electing, a drill."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tanist.admin.refused import NotThere, Unsafe
from tanist.cli.exit_codes import Exit
from tanist.cli.main import tanist
from tanist.errors import ResponseError
from tests.support.site import wait_until
from tests.support.tanist_group import NAME, GroupProcess

pytestmark = pytest.mark.takes(25)
CLUSTER = "tanist-tests"


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroupProcess]:
    with GroupProcess(tmp_path_factory.mktemp("controlled")) as group:
        yield group


def run(group: GroupProcess, *words: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(tanist, ["admin", *words, "-n", group.names.address], input=answer)


def tell(group: GroupProcess, *words: str) -> Any:
    """What a command says as JSON."""
    done = run(group, *words, "--json")
    assert done.exit_code == 0, f"{words}: {done.output}{done.exception!r}"
    return json.loads(done.stdout)


def replicas(group: GroupProcess, *whom: str) -> dict[str, dict[str, Any]]:
    """The replicas as the controller sees them, by address."""
    rows = tell(group, "getSyncStateSet", "-a", group.controller.address, *whom)["broker-a"]
    return {each["brokerAddress"]: each for each in (*rows["inSyncReplicas"], *rows["notInSyncReplicas"])}


def test_who_leads_and_who_is_in_step_is_shown(group: GroupProcess) -> None:
    controller = ("-a", group.controller.address)
    addresses = {each.address for each in group.replicas}
    found = tell(group, "getControllerMetaData", *controller)
    assert found["controllerLeaderAddress"] == group.controller.address
    assert f"at {group.controller.address}" in run(group, "getControllerMetaData", *controller).output
    for whom in (("-b", NAME), ("-c", CLUSTER)):
        assert set(replicas(group, *whom)) == addresses
        assert group.master().address in run(group, "getSyncStateSet", *controller, *whom).output
    # A log without a byte has no epoch.
    tell(group, "sendMsgStatus", "-b", NAME, "-c", "1")
    for whom in (("-b", NAME), ("-c", CLUSTER)):
        wait_until(
            lambda whom=whom: {each["addr"] for each in tell(group, "getBrokerEpoch", *whom)} == addresses
        )
        epochs = tell(group, "getBrokerEpoch", *whom)
        assert {(each["brokerName"], each["startOffset"]) for each in epochs if each["epoch"] == 1} == {
            (NAME, 0)
        }
    assert isinstance(run(group, "getBrokerEpoch", "-b", "broker-x").exception, NotThere)


def test_a_controllers_settings_are_shown_and_changed(group: GroupProcess) -> None:
    address = group.controller.address
    words = ("-a", address, "-k", "enableElectUncleanMaster", "-v")

    def setting() -> str:
        return tell(group, "getControllerConfig", "-a", address)[address]["enableElectUncleanMaster"]

    assert setting() == "false"
    assert tell(group, "updateControllerConfig", *words, "true") == [{"brokerAddr": address, "isDone": True}]
    assert setting() == "true"
    assert run(group, "updateControllerConfig", *words, "false").output == (
        f"{address}: enableElectUncleanMaster=false\n"
    )
    refused = run(group, "updateControllerConfig", "-a", address, "-k", "listenPort", "-v", "1")
    assert refused.exit_code == Exit.NOT_ALLOWED
    assert "listenPort" in refused.output
    assert setting() == "false"


def test_a_replica_is_elected_by_hand(group: GroupProcess) -> None:
    old, (new,) = group.master(), group.slaves()
    wanted = str(replicas(group, "-b", NAME)[new.address]["brokerId"])
    words = ("electMaster", "-a", group.controller.address, "-bn", NAME, "-c", CLUSTER, "-b")
    found = tell(group, *words, wanted)
    assert (found["brokerName"], found["masterAddress"]) == (NAME, new.address)
    assert group.master() is new
    group.wait_in_step()
    epochs = tell(group, "getBrokerEpoch", "-b", NAME)
    assert found["masterEpoch"] == max(each["epoch"] for each in epochs)
    assert isinstance(run(group, *words, "77").exception, ResponseError)
    assert (
        f"master is {replicas(group, '-b', NAME)[old.address]['brokerId']}"
        in run(group, *words, str(replicas(group, "-b", NAME)[old.address]["brokerId"])).output
    )
    group.wait_in_step()


def test_a_drill_moves_mastership_brings_it_back_and_refuses_what_is_unsafe(group: GroupProcess) -> None:
    master = group.master()
    kept = run(group, "drill", "-b", NAME, answer="another\n")
    assert kept.exit_code == 1
    assert group.master() is master
    report = tell(group, "drill", "-b", NAME, "--yes")
    first, second = report["steps"]
    assert (first["fromAddr"], second["toAddr"]) == (master.address, master.address)
    assert second["epoch"] > first["epoch"]
    seen = report["seen"]
    assert seen["sentCount"] > 0
    assert seen["lostCount"] == 0
    assert group.master() is master
    group.slaves()[0].kill()
    refused = run(group, "drill", "-b", NAME, "--yes")
    assert isinstance(refused.exception, Unsafe), refused.output
    assert group.master() is master


def test_replicas_that_do_not_come_back_are_forgotten(group: GroupProcess) -> None:
    master, (gone,) = group.master(), group.slaves()
    gone.kill()
    words = ("cleanBrokerMetadata", "-a", group.controller.address, "-bn", NAME, "-c", CLUSTER, "-b")
    assert run(group, *words, "one").exit_code == Exit.USAGE
    known = replicas(group, "-b", NAME)
    alive, dead = (str(known[each.address]["brokerId"]) for each in (master, gone))
    refused = run(group, *words, alive)
    assert isinstance(refused.exception, ResponseError), refused.output

    def is_forgotten() -> bool:
        return run(group, *words, dead).exit_code == 0

    # The controller takes it for alive until it has missed its heartbeats.
    wait_until(is_forgotten)
    assert set(replicas(group, "-b", NAME)) == {master.address}
