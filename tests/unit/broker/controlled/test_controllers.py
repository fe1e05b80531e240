import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tanist.broker.controlled.controllers import Controllers
from tanist.errors import NoLeader, RequestTimeout, ResponseError
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import BrokerNameRequest
from tests.support.played_controllers import PlayedControllers
from tests.support.virtual_time import run_virtually

THREE = ("c1:9878", "c2:9878", "c3:9878")


def _info() -> Command:
    return Command.request(RequestCode.CONTROLLER_GET_REPLICA_INFO, BrokerNameRequest(broker_name="b"))


def _played(*addresses: str) -> tuple[PlayedControllers, Controllers]:
    played = PlayedControllers(*addresses)
    played.ids[1] = "x"
    return played, Controllers(played.client, played.addresses, chance=lambda: 0.5)


def _took(scenario: Callable[[], Awaitable[object]]) -> float:
    """How long it took, in its own time."""

    async def timed() -> float:
        begun_s = asyncio.get_running_loop().time()
        await scenario()
        return asyncio.get_running_loop().time() - begun_s

    return run_virtually(timed())


def test_the_leader_is_found_once_and_then_asked() -> None:
    played, controllers = _played(*THREE)
    played.leader = "c2:9878"

    async def scenario() -> None:
        for _ in range(3):
            await controllers.ask(_info)

    assert _took(scenario) < 0.02
    assert controllers.leader == "c2:9878"
    assert len(played.times_of(RequestCode.CONTROLLER_GET_METADATA_INFO)) == 3
    assert len(played.times_of(RequestCode.CONTROLLER_GET_REPLICA_INFO, "c2:9878")) == 3


@pytest.mark.parametrize("fault", ["down", "stuck"])
def test_a_controller_that_is_silent_delays_nothing_while_another_names_the_leader(fault: str) -> None:
    played, controllers = _played(*THREE)
    played.leader = "c3:9878"
    getattr(played, fault).add("c1:9878")
    assert _took(lambda: controllers.ask(_info)) < 0.02


def test_a_leader_that_leads_no_more_is_left_at_once() -> None:
    played, controllers = _played(*THREE)

    async def scenario() -> None:
        await controllers.ask(_info)
        played.leader = "c2:9878"
        # This one is asked first and has not heard of it.
        played.believed["c1:9878"] = "c1:9878"
        await controllers.ask(_info)

    assert _took(scenario) < 0.1
    assert controllers.leader == "c2:9878"


def test_a_leader_whose_connection_is_gone_is_looked_for_again() -> None:
    played, controllers = _played(*THREE)

    async def scenario() -> None:
        await controllers.ask(_info)
        played.down.add("c1:9878")
        controllers.forget("c1:9878")
        controllers.forget("c3:9878")
        played.leader = "c3:9878"
        await controllers.ask(_info)

    assert _took(scenario) < 0.1


def test_a_leader_that_is_frozen_costs_a_second() -> None:
    played, controllers = _played(*THREE)

    async def scenario() -> None:
        await controllers.ask(_info)
        played.stuck.add("c1:9878")
        played.leader = "c2:9878"
        await controllers.ask(_info)

    assert 1.0 <= _took(scenario) < 1.2


def test_while_controllers_choose_a_leader_it_is_waited_for() -> None:
    played, controllers = _played(*THREE)
    played.leader = None

    async def scenario() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(controllers.ask(_info))
            await asyncio.sleep(0.3)
            played.leader = "c1:9878"

    assert _took(scenario) < 0.6


def test_nobody_is_asked_for_ever() -> None:
    played, controllers = _played(*THREE)
    played.down.update(THREE)
    with pytest.raises(NoLeader, match=r"c1:9878.*c2:9878.*c3:9878") as failed:
        run_virtually(controllers.ask(_info))
    assert "refused" in failed.value.reasons
    assert len(played.asked) <= 15
    assert _took_at_most(played) <= 3


def _took_at_most(played: PlayedControllers) -> float:
    return played.asked[-1][0] - played.asked[0][0]


def test_an_answer_that_says_no_is_raised_and_not_asked_again() -> None:
    played, controllers = _played()
    played.refusals[RequestCode.CONTROLLER_GET_REPLICA_INFO] = [ResponseCode.CONTROLLER_INVALID_REQUEST]
    with pytest.raises(ResponseError, match="planned"):
        run_virtually(controllers.ask(_info))
    assert len(played.times_of(RequestCode.CONTROLLER_GET_REPLICA_INFO)) == 1


def test_what_may_have_been_taken_is_not_sent_twice_if_it_must_not_be() -> None:
    played, controllers = _played()
    controllers.leader = "c1:9878"
    played.stuck.add("c1:9878")
    with pytest.raises(RequestTimeout):
        run_virtually(controllers.ask(_info, is_once=True))
    assert len(played.asked) == 1


def test_what_was_not_sent_may_be_sent_again() -> None:
    played, controllers = _played(*THREE)
    controllers.leader = "gone:9878"
    played.down.add("gone:9878")
    run_virtually(controllers.ask(_info, is_once=True))
    assert controllers.leader == "c1:9878"


def test_an_address_that_is_none_is_not_believed() -> None:
    played, controllers = _played("c1:9878")
    played.leader = "nowhere"
    with pytest.raises(NoLeader, match="knows of none"):
        run_virtually(controllers.find_leader())
