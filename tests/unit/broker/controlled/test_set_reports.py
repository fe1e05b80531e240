from dataclasses import dataclass

from tanist.broker.controlled.controllers import Controllers
from tanist.broker.controlled.identity import Identity
from tanist.broker.controlled.set_reports import SetAnswer, SetRefused, SetReports, SetTaken, SetUnknown
from tanist.protocol.codes import RequestCode, ResponseCode
from tests.support.played_controllers import PlayedControllers
from tests.support.virtual_time import VirtualClock, run_virtually


@dataclass(frozen=True)
class _Proposal:
    members: frozenset[int]
    set_epoch: int


BOTH = frozenset({1, 2})


def _report(played: PlayedControllers, *, epoch: int = 1, set_epoch: int = 1) -> SetAnswer:
    async def scenario() -> SetAnswer:
        controllers = Controllers(played.client, played.addresses, chance=lambda: 0.5)
        reports = SetReports(controllers, Identity("c", "b", 1), VirtualClock().now_ms)
        return await reports.report(_Proposal(BOTH, set_epoch), epoch=epoch)

    return run_virtually(scenario())


def _played() -> PlayedControllers:
    played = PlayedControllers()
    played.ids = {1: "x", 2: "y"}
    played.places = {1: "a:1", 2: "b:1"}
    played.choose(1)
    return played


def test_a_set_that_is_taken_has_the_next_epoch() -> None:
    played = _played()
    assert _report(played) == SetTaken(BOTH, 2)
    assert (played.members, played.set_epoch) == (BOTH, 2)


def test_a_refusal_tells_the_set_that_is_in_force() -> None:
    played = _played()
    answer = _report(played, set_epoch=7)
    assert isinstance(answer, SetRefused)
    assert answer.code == ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH
    assert (answer.view.sync_state_set, answer.view.set_epoch, answer.view.epoch) == (frozenset({1}), 1, 1)


def test_a_refusal_is_one_only_when_the_set_in_force_is_known() -> None:
    played = _played()
    played.refusals[RequestCode.CONTROLLER_GET_REPLICA_INFO] = [ResponseCode.SYSTEM_ERROR]
    answer = _report(played, epoch=3)
    assert isinstance(answer, SetUnknown)
    assert "another epoch" in answer.reason


def test_without_an_answer_nothing_is_known_and_nothing_is_sent_twice() -> None:
    played = _played()
    played.stuck.add("c1:9878")
    played.believed["c2:9878"] = "c1:9878"
    played.addresses = ("c1:9878", "c2:9878")
    assert isinstance(_report(played), SetUnknown)
    assert len(played.times_of(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET)) == 1


def test_while_nobody_leads_nothing_is_known() -> None:
    played = _played()
    played.leader = None
    assert isinstance(_report(played), SetUnknown)
    assert played.times_of(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET) == []
