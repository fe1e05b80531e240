"""Replica groups of Tanist and Apache RocketMQ, with the controller of either: who is master changes, the log
stays one."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.controller import ElectMasterRequest
from tanist.store import MessageStore, StoreSettings
from tanist.store.diverged import diverged_folders, read_diverged, read_report
from tanist.store.epoch_file import FILE_NAME, decode_epochs
from tests.support import partners
from tests.support.attacked import wait_until
from tests.support.controllers import ControllerView
from tests.support.group_senders import GroupSenders, bodies_at
from tests.support.messages import kill, make_message
from tests.support.replicated_log import ends_equal
from tests.support.rocketmq.cluster import Broker, RocketMQ
from tests.support.rocketmq.controlled import SWIFT_CONTROLLER, SWIFT_REPLICA, start_controller, start_replica
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.tanist_group import NAME, ControllerProcess
from tests.support.wire import Wire

pytestmark = pytest.mark.partner("java", "maven")

CLUSTER = "tanist-tests"
SOME = 100
_SECRET = "the secret of all replicas, long and random"
_FILE_BYTES = 1 << 20
_WAIT_S = 60.0
_THEIRS = {
    **SWIFT_REPLICA,
    # Who is killed is known to be by its connection. On a busy machine nobody else should be taken for dead.
    "controllerHeartBeatTimeoutMills": 10_000,
    "allAckInSyncStateSet": "true",
    "mappedFileSizeCommitLog": _FILE_BYTES,
    # A slave says where its log ends so long after it has connected.
    "haSendHeartbeatInterval": 500,
    # The least there is. So long it may take until it hears where a new master of Tanist's is.
    "registerNameServerPeriod": 10_000,
}
_OURS = {
    "enableControllerMode": "true",
    "haCompatibility": "autoswitch",
    "haAllowedAddresses": "127.0.0.1",
    "haCountedAddresses": "127.0.0.1",
    "mappedFileSizeCommitLog": _FILE_BYTES,
}


class MixedGroup:
    """A broker of RocketMQ, which is master, and one of Tanist, both in step."""

    def __init__(self, directory: Path, rocketmq: RocketMQ, controller: str, running: ExitStack) -> None:
        self._rocketmq = rocketmq
        self._controller = controller
        self.view = running.enter_context(ControllerView(controller))
        self.theirs = self._start_theirs()
        self.ours = running.enter_context(
            BrokerProcess(
                directory / "ours", rocketmq.name_server, name=NAME, controllerAddr=controller, **_OURS
            )
        )
        self.wait_in_step(master=self.theirs)

    @property
    def addresses(self) -> Sequence[str]:
        return (self.ours.address, self.theirs.address)

    def restart_theirs(self) -> None:
        """Start the broker of RocketMQ again, where and on what it was."""
        was = self.theirs
        self.theirs = self._start_theirs(was.store_dir, {"listenPort": was.port, "haListenPort": was.ha_port})

    def wait_in_step(self, *, master: Broker | BrokerProcess) -> None:
        """Wait until this one is master and both are in the sync state set."""

        def is_so() -> bool:
            group = self.view.group(NAME)
            return group.master_address == master.address and len(group.in_sync_replicas) == 2

        wait_until(is_so, timeout_s=_WAIT_S)

    def wait_for_switch(self, kill: Callable[[], None], *, to: Broker | BrokerProcess) -> None:
        """Kill the master; the other one reigns next."""
        epoch = self.view.group(NAME).master_epoch
        kill()
        after = self.view.wait_for_epoch(NAME, beyond=epoch)
        assert after.master_address == to.address
        assert [each.broker_address for each in after.in_sync_replicas] == [to.address]

    def elect(self, chosen: Broker | BrokerProcess) -> None:
        """Have the controller make this one master, as an operator would, and wait until both are in step."""
        (replica,) = [
            each for each in self.view.group(NAME).in_sync_replicas if each.broker_address == chosen.address
        ]
        header = ElectMasterRequest(
            cluster_name=CLUSTER, broker_name=NAME, broker_id=replica.broker_id, is_designated=True
        )
        with Wire(self._controller) as wire:
            answer = wire.ask(Command.request(RequestCode.CONTROLLER_ELECT_MASTER, header))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        self.wait_in_step(master=chosen)

    def wait_for_equal_logs(self) -> None:
        wait_until(lambda: ends_equal(self.ours.store, self.theirs.store_dir), timeout_s=_WAIT_S)
        wait_until(lambda: _epochs(self.ours.store) == _epochs(self.theirs.store_dir), timeout_s=_WAIT_S)

    def _start_theirs(self, store_dir: Path | None = None, ports: dict[str, object] | None = None) -> Broker:
        settings = {**_THEIRS, **(ports or {})}
        return start_replica(self._rocketmq, self._controller, store_dir=store_dir, properties=settings)


def _epochs(store_dir: Path) -> object:
    return decode_epochs((store_dir / FILE_NAME).read_bytes()).epochs


@contextmanager
def _rocketmq(directory: Path) -> Generator[tuple[RocketMQ, ExitStack]]:
    with ExitStack() as running:
        names = running.enter_context(NameServerProcess(directory / "names"))
        try:
            rocketmq = RocketMQ(directory / "rocketmq", name_server=names.address)
        except partners.PartnerMissing as lack:
            partners.do_without(lack)
        yield running.enter_context(rocketmq), running


def _reign_by_turns(group: MixedGroup) -> None:
    """Each replaces the other, by an operator's word or after it was killed."""
    # Before there is a message.
    group.elect(group.ours)
    group.elect(group.theirs)

    with GroupSenders(group.addresses) as senders:
        senders.wait_for(SOME)
        group.wait_for_switch(group.theirs.kill, to=group.ours)
        senders.wait_for(SOME)
    acknowledged = senders.acknowledged
    group.restart_theirs()
    group.wait_in_step(master=group.ours)
    group.wait_for_equal_logs()

    # What ours writes in its last reign, the first thing in it, nobody gets to know.
    group.elect(group.theirs)
    group.elect(group.ours)
    group.wait_for_switch(group.ours.kill, to=group.theirs)
    with GroupSenders(group.addresses) as senders:
        senders.wait_for(SOME)
    acknowledged += senders.acknowledged
    alone = _write_alone(group.ours)
    group.ours.restart()
    group.wait_in_step(master=group.theirs)
    group.wait_for_equal_logs()
    assert _diverged_bodies(group.ours)[-1] == alone

    group.elect(group.ours)
    held = bodies_at(group.ours.address)
    assert [one.body for one in acknowledged if one.body not in held] == []
    assert alone not in held
    group.wait_for_equal_logs()
    assert "Traceback" not in group.ours.process.output()


def _write_alone(killed: BrokerProcess) -> bytes:
    """Have the log of a killed broker end with a message that it had not sent to anybody."""
    settings = StoreSettings(
        mapped_file_size_commit_log=_FILE_BYTES,
        mapped_file_size_consume_queue=20 * 1000,
        max_hash_slot_num=1000,
        max_index_num=4000,
    )
    message = make_message()
    store = MessageStore.open(killed.store, settings, waits_for_confirm=True)
    store.append(message)
    kill(store)
    return bytes(message.body)


def _diverged_bodies(broker: BrokerProcess) -> list[bytes]:
    bodies: list[bytes] = []
    for folder in diverged_folders(broker.store):
        report = read_report(folder)
        assert report is not None
        bodies += [bytes(record.body) for record in read_diverged(folder, report)]
    return bodies


def _check_operators_view(group: MixedGroup, in_step: str, epochs: str) -> None:
    assert f"#MasterAddr\t{group.ours.address}" in in_step
    assert "#SyncStateSetNums\t2" in in_step
    assert f"brokerAddress='{group.theirs.address}', alive=true" in in_step
    told = [part.splitlines() for part in epochs.split("#clusterName")[1:]]
    assert {lines[2] for lines in told} == {f"#brokerAddr\t{address}" for address in group.addresses}
    of_one, of_other = ([line for line in lines if line.startswith("#Epoch")] for lines in told)
    assert of_one == of_other
    # The reigns of the others wrote nothing.
    assert len(of_one) == 4


@pytest.mark.behaviour("S2-44")
@pytest.mark.takes(25)
def test_brokers_of_both_replace_each_other_under_our_controller(tmp_path: Path) -> None:
    with _rocketmq(tmp_path) as (rocketmq, running):
        controller = running.enter_context(ControllerProcess(tmp_path / "controller"))
        group = MixedGroup(tmp_path, rocketmq, controller.address, running)
        _reign_by_turns(group)
        in_step, epochs = rocketmq.mqadmin_each(
            ("getSyncStateSet", "-a", controller.address, "-b", NAME), ("getBrokerEpoch", "-b", NAME)
        )
        _check_operators_view(group, in_step, epochs)


@pytest.mark.behaviour("S2-44")
@pytest.mark.takes(25)
def test_brokers_of_both_and_of_tanist_alone_replace_each_other_under_rocketmqs_controller(
    tmp_path: Path,
) -> None:
    with _rocketmq(tmp_path) as (rocketmq, running):
        controller = start_controller(rocketmq, properties=SWIFT_CONTROLLER)
        with ThreadPoolExecutor(1) as beside:
            # One waits for Java while the other works.
            alone = beside.submit(_switch_ours, tmp_path, rocketmq.name_server, controller.address)
            _reign_by_turns(MixedGroup(tmp_path, rocketmq, controller.address, running))
            alone.result()


def _switch_ours(directory: Path, name_server: str, controller: str) -> None:
    """A killed master of a group of Tanist's is replaced, comes back, and nothing acknowledged is lost."""
    name = "broker-b"
    settings = {"enableControllerMode": "true", "controllerAddr": controller, "haSecret": _SECRET}
    with ExitStack() as running:
        view = running.enter_context(ControllerView(controller))
        first, second = (
            running.enter_context(BrokerProcess(directory / part, name_server, name=name, **settings))
            for part in ("first", "second")
        )
        before = view.wait_for_set(name, size=2)
        assert before.master_address == first.address
        with GroupSenders([first.address, second.address]) as senders:
            senders.wait_for(SOME)
            first.kill()
            assert view.wait_for_epoch(name, beyond=before.master_epoch).master_address == second.address
            senders.wait_for(SOME)
            first.restart()
            view.wait_for_set(name, size=2)
            senders.wait_for(SOME)
        assert senders.lost(bodies_at(second.address)) == []
        wait_until(lambda: ends_equal(second.store, first.store), timeout_s=_WAIT_S)
