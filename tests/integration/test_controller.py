"""The controller at work: elections, leases, what it tells, and what it refuses."""

import asyncio
import logging
import time
from pathlib import Path

import pytest

from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.config_text import decode_config, encode_config
from tanist.protocol.headers.controller import (
    CleanBrokerDataRequest,
    ElectMasterResponse,
    RegisterReplicaResponse,
)
from tests.support.conditions import until
from tests.support.played_replicas import (
    LONG_MS,
    SHORT_MS,
    PlayedReplica,
    beating,
    controlling,
    in_time,
    reign,
    replicas,
)
from tests.support.reigning import NAME, heartbeat

C, R = RequestCode, ResponseCode
SHORT_S = SHORT_MS / 1000


@pytest.mark.behaviour("S2-45")
def test_a_master_is_elected_told_to_all_and_given_a_lease(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = PlayedReplica(1, session="s1"), PlayedReplica(2, session="s2")
        async with controlling(tmp_path) as controller, replicas(first, second):
            at = controller.address
            await first.join(at)
            await second.join(at)
            answer = await first.elect(at)
            told = answer.header(ElectMasterResponse)
            assert (told.master_broker_id, told.master_epoch) == (1, 1)
            assert told.master_ha_address == f"{first.address}1"
            for each in (first, second):
                await until(lambda each=each: bool(each.news))
                (news,) = each.news
                assert (news.master_broker_id, news.master_address) == (1, first.address)
                assert (news.master_epoch, news.sync_state_set_epoch) == (1, 1)
                assert news.master_ha_address == f"{first.address}1"
            assert await first.beat(at) == 1
            assert await second.beat(at) is None

    in_time(scenario())


def test_a_broker_without_a_session_is_replaced_when_its_connection_closes(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = PlayedReplica(1), PlayedReplica(2)
        async with controlling(tmp_path) as controller, replicas(first, second):
            at = controller.address
            await reign(controller, first, second)
            assert await first.beat(at) is None
            await first.disconnect()
            view = await second.wait_for_master(at, beyond=1)
            assert (view.master_broker_id, view.master_epoch) == (2, 2)
            assert [each.broker_id for each in view.in_sync_replicas] == [2]

    in_time(scenario())


def test_who_may_be_silent_for_long_does_not_keep_others_from_being_missed(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = PlayedReplica(1), PlayedReplica(2)
        async with controlling(tmp_path) as controller, replicas(first, second):
            at = controller.address
            await reign(controller, first, second)
            await first.beat(at, heartbeat_timeout_ms=SHORT_MS)
            view = await second.wait_for_master(at, beyond=1)
            assert view.master_broker_id == 2

    in_time(scenario())


@pytest.mark.behaviour("S2-53")
def test_a_master_with_a_lease_is_not_replaced_before_it_is_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = (PlayedReplica(n, session=f"s{n}", timeout_ms=SHORT_MS) for n in (1, 2))
        async with controlling(tmp_path) as controller, replicas(first, second):
            at = controller.address
            await reign(controller, first, second)
            async with beating(second, at=[at]):
                sent_s = time.monotonic()
                assert await first.beat(at) == 1
                await first.disconnect()
                view = await second.wait_for_master(at, beyond=1)
                assert time.monotonic() - sent_s >= SHORT_S
            assert (view.master_broker_id, view.master_epoch) == (2, 2)

    in_time(scenario())


def test_a_report_that_a_master_died_lets_another_one_reign_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = PlayedReplica(1, session="s1"), PlayedReplica(2, session="s2")
        async with controlling(tmp_path) as controller, replicas(first, second):
            at = controller.address
            await reign(controller, first, second)
            # The record has to learn first that this master may be silent for so long.
            assert await first.beat(at, heartbeat_timeout_ms=2 * LONG_MS) is None
            await first.wait_for_lease(at, epoch=1, heartbeat_timeout_ms=2 * LONG_MS)
            assert (await second.report_dead(at)).code == R.SUCCESS
            assert (await first.view(at)).master_broker_id == 1
            await second.beat(at, session_id="s2-again")
            assert (await first.report_dead(at)).code == R.SUCCESS
            view = await second.wait_for_master(at, beyond=1)
            assert view.master_broker_id == 2
            assert (await first.heartbeat(at)).code == R.CONTROLLER_BROKER_NOT_ALIVE
            stranger = PlayedReplica(1, session="never heard of")
            async with stranger.playing():
                answer = await stranger.report_dead(at)
            assert answer.code == R.CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS

    in_time(scenario())


@pytest.mark.behaviour("S2-46")
def test_a_group_that_nobody_can_lead_waits_and_uses_no_epochs_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = PlayedReplica(1), PlayedReplica(2)
        async with controlling(tmp_path) as controller, replicas(first, second):
            at = controller.address
            await reign(controller, first)
            await second.join(at)
            await first.disconnect()
            await second.wait_for_no_master(at)
            answer = await second.elect(at)
            assert answer.code == R.CONTROLLER_ELECT_MASTER_FAILED
            assert (await second.view(at)).master_epoch == 1
            # It need not ask: to be alive is enough.
            await first.beat(at)
            view = await second.wait_for_master(at, beyond=1)
            assert (view.master_broker_id, view.master_epoch) == (1, 2)
            await until(lambda: [news.master_epoch for news in second.news] == [2])

    in_time(scenario())


def test_a_controller_that_starts_anew_remembers_and_waits_before_it_replaces(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = (PlayedReplica(n, session=f"s{n}", timeout_ms=SHORT_MS) for n in (1, 2))
        async with replicas(first, second):
            async with controlling(tmp_path) as controller:
                await reign(controller, first, second)
            began_s = time.monotonic()
            async with controlling(tmp_path) as controller:
                at = controller.address
                answer = await second.register(at)
                assert answer.header(RegisterReplicaResponse).master_broker_id == 1
                async with beating(second, at=[at]):
                    view = await second.wait_for_master(at, beyond=1)
                    assert time.monotonic() - began_s >= SHORT_S
                assert (view.master_broker_id, view.master_epoch) == (2, 2)
            # Who is heard of in time stays.
            async with (
                controlling(tmp_path) as controller,
                beating(second, at=[controller.address]),
            ):
                await asyncio.sleep(SHORT_S * 1.5)
                assert await second.beat(controller.address) == 2

    in_time(scenario())


def test_a_master_that_was_started_anew_reigns_in_a_new_epoch(tmp_path: Path) -> None:
    async def scenario() -> None:
        leased = PlayedReplica(1, session="s1", timeout_ms=SHORT_MS)
        plain = PlayedReplica(1, name="plain")
        async with controlling(tmp_path) as controller, replicas(leased, plain):
            at = controller.address
            await reign(controller, plain)
            await reign(controller, leased)
            leased.session = "s1-again"
            await leased.register(at)
            async with beating(leased, at=[at]):
                view = await leased.wait_for_master(at, beyond=1)
            assert (view.master_broker_id, view.master_epoch) == (1, 2)
            await plain.register(at)
            assert await plain.beat(at) is None
            view = await plain.wait_for_master(at, beyond=1)
            assert (view.master_broker_id, view.master_epoch) == (1, 2)

    in_time(scenario())


def test_an_operator_replaces_a_master_when_its_lease_is_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second, third = (PlayedReplica(n, session=f"s{n}", timeout_ms=SHORT_MS) for n in (1, 2, 3))
        async with controlling(tmp_path) as controller, replicas(first, second, third):
            at = controller.address
            await reign(controller, first, second)
            await third.join(at)
            async with beating(first, second, third, at=[at]):
                answer = await third.elect(at, is_designated=True)
                assert answer.code == R.CONTROLLER_ELECT_MASTER_FAILED
                began_s = time.monotonic()
                await first.wait_for_lease(at, epoch=1)
                # It is not renewed from now on, or the end would never come.
                answer = await second.elect(at, is_designated=True)
                assert answer.code == R.SUCCESS, answer.remark
                assert time.monotonic() - began_s >= SHORT_S * 0.9
                assert answer.header(ElectMasterResponse).master_broker_id == 2
                assert await first.beat(at) is None
                await second.wait_for_lease(at, epoch=2)

    in_time(scenario())


def test_an_operator_need_not_ask_again_if_a_timer_is_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = asyncio.sleep

    async def sleep_less(rest_s: float) -> None:
        await sleep(rest_s * 0.9)

    async def scenario() -> None:
        first, second = (PlayedReplica(n, session=f"s{n}", timeout_ms=SHORT_MS) for n in (1, 2))
        async with controlling(tmp_path) as controller, replicas(first, second):
            at = controller.address
            await reign(controller, first, second)
            async with beating(first, second, at=[at]):
                await first.wait_for_lease(at, epoch=1)
                monkeypatch.setattr(asyncio, "sleep", sleep_less)
                answer = await second.elect(at, is_designated=True)
                assert answer.code == R.SUCCESS, answer.remark

    in_time(scenario())


def test_an_unclean_election_tells_what_may_be_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        first, second = PlayedReplica(1), PlayedReplica(2)
        async with controlling(tmp_path) as controller, replicas(first, second):
            at = controller.address
            await reign(controller, first)
            await second.join(at)
            await second.beat(at, log_end=77, epoch=1)
            await first.disconnect()
            await second.wait_for_no_master(at)
            changes = encode_config({"enableElectUncleanMaster": "true"})
            assert (await second.ask(at, C.UPDATE_CONTROLLER_CONFIG, body=changes)).code == R.SUCCESS
            view = await second.wait_for_master(at, beyond=1)
            assert view.master_broker_id == 2

    with caplog.at_level(logging.WARNING):
        in_time(scenario())
    (line,) = [each.getMessage() for each in caplog.records if "unclean" in each.getMessage()]
    assert "messages may be lost" in line
    assert "set=[1] master=2 log_end=77 log_epoch=1" in line


def test_what_is_refused_is_counted_and_shown(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = PlayedReplica(1, session="s1")
        async with controlling(tmp_path) as controller, replicas(first):
            at = controller.address
            await reign(controller, first)
            before = await first.view(at)
            assert (await first.register(at, cluster="d")).code == R.CONTROLLER_INVALID_REQUEST
            assert (await first.heartbeat(at, cluster_name="d")).code == R.CONTROLLER_INVALID_REQUEST
            unknown = R.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED
            assert (await first.ask(at, C.BROKER_HEARTBEAT, heartbeat(7))).code == unknown
            assert (await first.set_members(at, 1, 9)).code == R.CONTROLLER_INVALID_REPLICAS
            for code, body in (
                (C.CONTROLLER_ALTER_SYNC_STATE_SET, b"{"),
                (C.CONTROLLER_GET_SYNC_STATE_DATA, b'{"a":1}'),
                (C.CONTROLLER_ELECT_MASTER, b""),
                (C.UPDATE_CONTROLLER_CONFIG, b"\xff"),
            ):
                assert (await first.ask(at, code, body=body)).code == R.SYSTEM_ERROR
            assert await first.view(at) == before
            figures = await first.figures(at)
            assert figures["controllerRefused"] == "8"
            assert figures["controllerRefused.CONTROLLER_INVALID_REQUEST"] == "2"
            assert figures["controllerRefused.BAD_INPUT"] == "4"
            assert "cluster c, not to d" in figures["controllerRefusedLast.7"]
            assert figures["controllerIsLeader"] == "true"
            assert figures["controllerElections"] == "1"

    in_time(scenario())


def test_settings_can_be_read_and_some_changed(tmp_path: Path) -> None:
    async def scenario() -> None:
        asker = PlayedReplica(1)
        async with controlling(tmp_path) as controller, replicas(asker):
            at = controller.address

            async def update(**changes: str) -> Command:
                return await asker.ask(at, C.UPDATE_CONTROLLER_CONFIG, body=encode_config(changes))

            assert (await update(notifyBrokerRoleChanged="false")).code == R.SUCCESS
            for key in ("configBlackList", "configStorePath", "controllerStorePath", "listenPort"):
                answer = await update(**{key: "1"})
                assert answer.code == R.NO_PERMISSION
                assert key in (answer.remark or "")
            assert (await update(notifyBrokerRoleChanged="perhaps")).code == R.SYSTEM_ERROR
            answer = await asker.ask(at, C.GET_CONTROLLER_CONFIG)
            settings = decode_config(answer.body)
            assert settings["notifyBrokerRoleChanged"] == "false"
            assert settings["listenPort"] == at.rpartition(":")[2]
            await reign(controller, asker)
            assert asker.news == []

    in_time(scenario())


def test_a_group_is_cleaned_away_and_its_epochs_go_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = PlayedReplica(1)
        async with controlling(tmp_path) as controller, replicas(first):
            at = controller.address
            await reign(controller, first)
            force = CleanBrokerDataRequest(broker_name=NAME, is_clean_living_broker=True)
            gentle = CleanBrokerDataRequest(broker_name=NAME, cluster_name="c", is_clean_living_broker=False)
            refused = await first.ask(at, C.CLEAN_BROKER_DATA, gentle)
            assert refused.code == R.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
            assert (await first.ask(at, C.CLEAN_BROKER_DATA, force)).code == R.SUCCESS
            assert (await first.register(at)).code == R.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED
            await first.join(at)
            answer = await first.elect(at)
            assert answer.header(ElectMasterResponse).master_epoch == 2

    in_time(scenario())
