"""A replica under played controllers, in virtual time."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from tanist.broker.controlled.duty import Controlled
from tanist.broker.controlled.identity import Identity
from tanist.broker.controlled.joining import JoinState
from tanist.broker.controlled.orders import MasterOrder, SetOrder, SlaveOrder
from tanist.broker.controlled.set_reports import SetTaken, SetUnknown
from tanist.broker.controlled.status import HeldRole
from tanist.broker.master_place import MasterPlace
from tanist.errors import ForeignFile
from tanist.protocol.codes import Language, RequestCode, ResponseCode
from tests.support.broker_tables import SETTINGS
from tests.support.played_controllers import PlayedControllers
from tests.support.played_switch import PlayedReplica, PlayedSwitch
from tests.support.virtual_time import run_virtually, virtually_until

THREE = ("c1:9878", "c2:9878", "c3:9878")
OTHER = "10.0.0.1:10911"
OTHER_HA = "10.0.0.1:10912"
ELECT = RequestCode.CONTROLLER_ELECT_MASTER
INFO = RequestCode.CONTROLLER_GET_REPLICA_INFO
BEAT = RequestCode.BROKER_HEARTBEAT


@dataclass(frozen=True)
class _Proposal:
    members: frozenset[int]
    set_epoch: int


class _Site:
    """One replica and its controllers."""

    def __init__(
        self, root: Path, *addresses: str, language: Language = Language.PYTHON, is_learner: bool = False
    ) -> None:
        self.played = PlayedControllers(*addresses, language=language)
        self.switch = PlayedSwitch()
        self.told = PlayedReplica()
        self.told.is_learner = is_learner
        settings = msgspec.structs.replace(
            SETTINGS, enable_controller_mode=True, controller_addr=";".join(self.played.addresses)
        )
        self.replica = self.told.of(root, settings)
        self.controlled = Controlled(
            self.replica, self.switch, make_client=self.played.make_client, chance=lambda: 0.5
        )
        self.status = self.controlled.status

    def with_other_master(self, *, ha: str | None = OTHER_HA) -> "_Site":
        """Replica 1 is master of epoch 1."""
        played = self.played
        played.ids[1], played.places[1] = "x;1", OTHER
        if ha is not None:
            played.ha_addresses[1] = ha
        played.choose(1)
        return self

    @asynccontextmanager
    async def running(self, state: JoinState | None = JoinState.RUNNING) -> AsyncGenerator[None]:
        task = asyncio.get_running_loop().create_task(self.controlled.run())
        try:
            if state is not None:
                await virtually_until(lambda: self.status.state is state or task.done())
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            assert self.played.is_closed
            assert task.cancelled()

    def codes(self) -> list[int]:
        return [command.code for _, _, command in self.played.asked if command.code != BEAT]


def _kept(root: Path, suffix: str, fields: str) -> None:
    """What an earlier run wrote down."""
    (root / f"brokerIdentity{suffix}").write_text(f"DefaultCluster#broker-a{fields}")


def test_the_first_replica_of_a_group_gets_an_id_is_elected_and_is_master(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            assert site.switch.held == MasterOrder(1, frozenset({1}), 1)
            assert site.codes()[:5] == [
                RequestCode.CONTROLLER_GET_METADATA_INFO,
                RequestCode.CONTROLLER_GET_NEXT_BROKER_ID,
                RequestCode.CONTROLLER_APPLY_BROKER_ID,
                RequestCode.CONTROLLER_REGISTER_BROKER,
                ELECT,
            ]
            assert site.played.times_of(BEAT)[0] < site.played.times_of(ELECT)[0]
            assert (tmp_path / "brokerIdentity").read_text() == "DefaultCluster#broker-a#1"
            assert (site.status.role, site.status.broker_id, site.status.epoch) == (HeldRole.MASTER, 1, 1)
            assert (site.status.controller, site.status.reasons) == ("c1:9878", ())

    run_virtually(scenario())


def test_the_next_replica_follows_the_master_and_is_not_elected(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path).with_other_master()
        async with site.running():
            await virtually_until(lambda: site.switch.held is not None)
            assert site.switch.held == SlaveOrder(1, 1, MasterPlace(OTHER, OTHER_HA), OTHER)
            assert site.played.times_of(ELECT) == []
            assert site.status.broker_id == 2

    run_virtually(scenario())


@pytest.mark.behaviour("S2-45")
def test_a_broker_takes_no_writes_before_it_has_a_role(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        site.played.down.add("c1:9878")
        async with site.running(state=None):
            await asyncio.sleep(20)
            assert site.switch.fences == ["the controller has not given this broker a role yet"]
            assert site.switch.orders == []
            assert site.status.state is JoinState.INITIAL
            assert "refused" in site.status.reasons[0]

    run_virtually(scenario())


def test_whatever_fails_on_the_way_is_tried_again_soon(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        for code in (
            RequestCode.CONTROLLER_GET_NEXT_BROKER_ID,
            RequestCode.CONTROLLER_APPLY_BROKER_ID,
            RequestCode.CONTROLLER_REGISTER_BROKER,
            ELECT,
        ):
            site.played.refusals[code] = [ResponseCode.SYSTEM_ERROR] * 2
        begun_s = asyncio.get_running_loop().time()
        async with site.running():
            assert asyncio.get_running_loop().time() - begun_s < 1.5
            assert site.played.ids.keys() == {1}

    run_virtually(scenario())


def test_pauses_between_tries_grow_to_two_seconds(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        site.played.refusals[RequestCode.CONTROLLER_GET_NEXT_BROKER_ID] = [ResponseCode.SYSTEM_ERROR] * 99
        async with site.running(state=None):
            await asyncio.sleep(20)
        times = site.played.times_of(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID)
        gaps_s = [later - earlier for earlier, later in pairwise(times)]
        assert gaps_s[0] < 0.1
        assert 1 < gaps_s[-1] <= 2.1

    run_virtually(scenario())


def test_an_id_that_another_took_first_is_followed_by_the_next_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        _kept(tmp_path, "-temp", "#1#me;1")
        site = _Site(tmp_path).with_other_master()
        async with site.running():
            assert site.replica.files.load() == Identity("DefaultCluster", "broker-a", 2)

    run_virtually(scenario())


def test_an_id_that_was_applied_for_before_a_crash_is_used_up_by_nobody_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        _kept(tmp_path, "-temp", "#1#me;1")
        site = _Site(tmp_path)
        site.played.ids[1] = "me;1"
        async with site.running():
            assert site.played.ids.keys() == {1}
            assert RequestCode.CONTROLLER_GET_NEXT_BROKER_ID not in site.codes()

    run_virtually(scenario())


def test_a_replica_that_the_controller_does_not_know_stays_fenced_and_tells_the_way_out(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        _kept(tmp_path, "", "#3")
        site = _Site(tmp_path)
        async with site.running(state=None):
            await asyncio.sleep(5)
            assert site.status.state is JoinState.NAMED
            assert "delete brokerIdentity" in site.status.reasons[0]
            assert site.switch.orders == []

    run_virtually(scenario())


def test_a_broker_does_not_start_with_the_id_of_another(tmp_path: Path) -> None:
    (tmp_path / "brokerIdentity").write_text("DefaultCluster#broker-b#1")
    with pytest.raises(ForeignFile):
        _Site(tmp_path)


def test_who_is_not_in_step_waits_for_a_master_and_follows_it_when_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path).with_other_master()
        site.played.choose(None)
        async with site.running(JoinState.REGISTERED):
            await asyncio.sleep(10)
            assert site.status.state is JoinState.REGISTERED
            assert "not in step" in site.status.reasons[0]
            site.played.choose(1)
            site.controlled.hint(3, 2)
            assert await virtually_until(lambda: site.switch.held is not None) < 0.06
            assert site.status.state is JoinState.RUNNING

    run_virtually(scenario())


def test_a_heartbeat_tells_all_that_an_election_needs(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        site.told.log_end, site.told.confirmed_to, site.told.log_epoch = 300, 200, 1
        site.told.tables_gap = "not come since the link began: topic config"
        site.told.damage = "commitlog/0 at byte 7: the body does not match its checksum"
        async with site.running():
            beat = site.played.beats[-1]
        assert (beat.cluster_name, beat.broker_name, beat.broker_id) == ("DefaultCluster", "broker-a", 1)
        assert (beat.broker_addr, beat.ha_address) == ("127.0.0.1:10911", "127.0.0.1:10912")
        assert (beat.epoch, beat.log_end, beat.confirmed_to) == (1, 300, 200)
        assert (beat.heartbeat_timeout_ms, beat.election_priority) == (3_000, 2**31 - 1)
        assert (beat.session_id, beat.tables_gap) == ("s1", "not come since the link began: topic config")
        assert beat.damage == "commitlog/0 at byte 7: the body does not match its checksum"

    run_virtually(scenario())


def test_a_master_is_granted_a_lease_as_soon_as_it_holds_its_role(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path, *THREE)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            await asyncio.sleep(10)
            sent = [sent_s for epoch, sent_s, _ in site.told.leases if epoch == 1]
            assert len(sent) >= 20
            assert max(later - earlier for earlier, later in pairwise(sent)) <= 0.51
            assert {timeout_s for _, _, timeout_s in site.told.leases} == {3.0}
            assert site.status.lease is not None
            assert not site.status.lease.is_weak

    run_virtually(scenario())


def test_a_switch_that_takes_long_costs_neither_heartbeats_nor_questions(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        site.switch.may_end.clear()
        async with site.running():
            await asyncio.sleep(30)
            assert site.status.role is HeldRole.SWITCHING
            assert len(site.played.times_of(BEAT)) >= 60
            assert len(site.played.times_of(INFO)) >= 5
            assert len(site.told.leases) >= 60

    run_virtually(scenario())


@pytest.mark.behaviour("S2-45")
def test_a_notification_has_the_controller_asked_at_once_and_its_answer_decides(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        async with site.running():
            await asyncio.sleep(2.25)
            site.played.places[2] = OTHER
            site.played.choose(2)
            site.controlled.hint(2, 2)
            took_s = await virtually_until(lambda: isinstance(site.switch.held, SlaveOrder))
            assert took_s < 0.01
            assert site.switch.held == SlaveOrder(2, 2, None, OTHER)
            assert "broker 2 is master of epoch 2" in site.switch.fences

    run_virtually(scenario())


def test_a_forged_notification_changes_nothing_and_many_of_them_cost_little(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            asked_count = len(site.played.times_of(INFO))
            for count in range(2_000):
                site.controlled.hint(99 + count, 99)
                await asyncio.sleep(0.001)
            assert site.switch.held == MasterOrder(1, frozenset({1}), 1)
            assert len(site.switch.orders) == 1
            assert len(site.played.times_of(INFO)) - asked_count <= 2_000 * 0.001 / 0.02 + 1

    run_virtually(scenario())


def test_a_notification_that_is_no_news_asks_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            asked_count = len(site.played.times_of(INFO))
            site.controlled.hint(1, 1)
            site.controlled.hint(0, 7)
            await asyncio.sleep(0.4)
            assert len(site.played.times_of(INFO)) == asked_count

    run_virtually(scenario())


def test_without_notifications_a_role_is_learned_by_asking(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path).with_other_master()
        async with site.running():
            site.played.choose(2, {1, 2})
            # The heartbeat's answer tells it sooner than the next question would.
            assert await virtually_until(lambda: site.switch.is_master) < 0.6
            assert site.switch.held == MasterOrder(2, frozenset({1, 2}), 2)

    run_virtually(scenario())


def test_a_master_that_the_leader_grants_no_lease_asks_why_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            site.played.places[2] = OTHER
            site.played.choose(2)
            assert await virtually_until(lambda: isinstance(site.switch.held, SlaveOrder)) < 0.6

    run_virtually(scenario())


@pytest.mark.behaviour("S2-48")
def test_a_controller_with_lower_epochs_is_not_obeyed_which_is_counted_and_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        site.played.epoch = 6
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            site.played.epoch, site.played.master_id, site.played.places[2] = 3, 2, OTHER
            await asyncio.sleep(10)
            assert site.switch.held == MasterOrder(7, frozenset({1}), 1)
            assert site.status.refused_count > 1
            assert "epoch 3 after 7" in site.status.reasons[0]

    run_virtually(scenario())
    assert caplog.text.count("controller is not obeyed") == 1


@pytest.mark.behaviour("S2-54")
def test_without_any_controller_a_master_stays_master(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path, *THREE)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            for address in THREE:
                site.played.fail(address)
            await asyncio.sleep(60)
            assert site.switch.is_master
            assert len(site.switch.orders) == 1
            assert len(site.switch.fences) == 1
            assert "no controller leads" in site.status.reasons[0]
            leases = len(site.told.leases)
            site.played.down.clear()
            assert await virtually_until(lambda: len(site.told.leases) > leases) < 0.6
            await virtually_until(lambda: site.status.reasons == (), within_s=3)

    run_virtually(scenario())


def test_another_controller_that_leads_is_followed_without_a_pause_in_the_lease(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path, *THREE)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            await asyncio.sleep(3)
            site.played.leader = "c2:9878"
            site.played.fail("c1:9878")
            await asyncio.sleep(5)
            sent = [sent_s for _, sent_s, _ in site.told.leases]
            assert max(later - earlier for earlier, later in pairwise(sent)) <= 1.01
            assert site.status.lease is not None
            assert site.status.lease.controller == "c2:9878"

    run_virtually(scenario())


def test_a_group_that_the_controller_has_forgotten_is_registered_with_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            registered = len(site.played.times_of(RequestCode.CONTROLLER_REGISTER_BROKER))
            site.played.refusals[INFO] = [ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST]
            await asyncio.sleep(6)
            assert len(site.played.times_of(RequestCode.CONTROLLER_REGISTER_BROKER)) == registered + 1
            assert site.status.state is JoinState.RUNNING
            assert len(site.switch.orders) == 1

    run_virtually(scenario())


def test_a_group_without_a_master_is_offered_one_again_and_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path).with_other_master()
        async with site.running():
            site.played.choose(None)
            site.controlled.hint(2, 1)
            await asyncio.sleep(10)
            assert 5 <= len(site.played.times_of(ELECT)) <= 20
            assert "not in step" in site.status.reasons[0]
            site.played.members = frozenset({1, 2})
            await virtually_until(lambda: site.switch.is_master, within_s=2.1)
            assert site.status.epoch == 3

    run_virtually(scenario())


def test_a_set_is_reported_and_a_newer_one_of_the_controller_is_passed_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            both = frozenset({1, 2})
            answer = await site.controlled.report_set(_Proposal(both, 1), epoch=1)
            assert answer == SetTaken(both, 2)
            await asyncio.sleep(6)
            assert site.told.sets == []
            site.played.members, site.played.set_epoch = frozenset({1}), 3
            await asyncio.sleep(6)
            assert site.told.sets == [SetOrder(1, frozenset({1}), 3)]

    run_virtually(scenario())


def test_a_set_that_is_refused_has_the_role_asked_for_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            site.played.places[2] = OTHER
            site.played.choose(2)
            await site.controlled.report_set(_Proposal(frozenset({1, 2}), 1), epoch=1)
            assert await virtually_until(lambda: isinstance(site.switch.held, SlaveOrder)) < 0.1

    run_virtually(scenario())


def test_before_there_is_an_id_no_set_can_be_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        answer = await _Site(tmp_path).controlled.report_set(_Proposal(frozenset({1}), 1), epoch=1)
        assert isinstance(answer, SetUnknown)

    run_virtually(scenario())


def _weak(root: Path) -> _Site:
    return _Site(root, "c1:9878", language=Language.JAVA)


def test_under_a_controller_without_leases_its_word_that_we_are_master_stands_for_one(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        site = _weak(tmp_path)
        async with site.running():
            await virtually_until(lambda: site.switch.is_master)
            await asyncio.sleep(10)
            sent = [sent_s for _, sent_s, _ in site.told.leases]
            assert max(later - earlier for earlier, later in pairwise(sent)) <= 0.51
            assert sent[-1] in site.played.times_of(INFO)
            assert site.status.lease is not None
            assert site.status.lease.is_weak

    run_virtually(scenario())


@pytest.mark.parametrize("end", ["replaced", "disconnected"])
def test_such_a_lease_ends_with_the_word_or_with_the_connection(tmp_path: Path, end: str) -> None:
    async def scenario() -> None:
        site = _weak(tmp_path)
        async with site.running():
            await virtually_until(lambda: len(site.told.leases) > 3)
            granted = len(site.told.leases)
            if end == "replaced":
                site.played.places[2] = OTHER
                site.played.choose(2)
                await asyncio.sleep(2)
                assert site.told.void_count == 0
            else:
                site.played.fail("c1:9878")
                assert site.told.void_count == 1
                assert site.status.lease is None
                await asyncio.sleep(2)
            assert len(site.told.leases) == granted

    run_virtually(scenario())


def test_an_answer_that_is_read_after_its_connection_was_lost_is_no_such_lease(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _weak(tmp_path)
        async with site.running():
            await virtually_until(lambda: len(site.told.leases) > 3)
            asked_count = len(site.played.times_of(INFO))
            await virtually_until(lambda: len(site.played.times_of(INFO)) > asked_count)
            granted = len(site.told.leases)
            site.played.on_disconnect("c1:9878")
            lost_s = asyncio.get_running_loop().time()
            await virtually_until(lambda: len(site.told.leases) > granted)
            assert site.told.void_count == 1
            assert site.told.leases[granted][1] > lost_s

    run_virtually(scenario())


def test_a_slave_is_granted_no_lease(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _weak(tmp_path).with_other_master()
        async with site.running():
            await asyncio.sleep(20)
            assert site.told.leases == []
            assert len(site.played.times_of(INFO)) <= 5

    run_virtually(scenario())


def _states_told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [
        record.getMessage().split()[1]
        for record in caplog.records
        if record.getMessage().startswith("controlled ")
    ]


def test_each_state_is_one_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path)
        site.played.refusals[ELECT] = [ResponseCode.CONTROLLER_ELECT_MASTER_FAILED] * 3
        async with site.running():
            await asyncio.sleep(20)

    caplog.set_level("INFO")
    told = _states_told(caplog)
    run_virtually(scenario())
    assert told() == ["metadata", "applying", "named", "registered", "running"]


@pytest.mark.behaviour("S2-52")
def test_a_learner_does_not_offer_itself_and_follows_who_is_elected(tmp_path: Path) -> None:
    async def scenario() -> None:
        site = _Site(tmp_path, is_learner=True).with_other_master()
        site.played.choose(None)
        async with site.running(JoinState.REGISTERED):
            await virtually_until(lambda: site.codes().count(INFO) >= 2)
            assert site.switch.held is None
            site.played.choose(1)
            await virtually_until(lambda: isinstance(site.switch.held, SlaveOrder))
        assert ELECT not in site.codes()

    run_virtually(scenario())
