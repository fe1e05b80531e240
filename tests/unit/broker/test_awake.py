import asyncio

import pytest

from tanist.broker import awake as awake_module
from tanist.broker.awake import MOST_CREDIT, REST_WAITS, VAIN_COST, Awake, Credit
from tests.support.conditions import turns, until


def test_it_goes_on_as_long_as_it_pays() -> None:
    credit = Credit()
    for _ in range(100):
        assert credit.take()
        credit.on_paid()


def test_after_some_waits_in_vain_it_rests_and_then_tries_once() -> None:
    credit = Credit()
    tries = 0
    while credit.take():
        credit.on_vain()
        tries += 1
    assert tries == -(-MOST_CREDIT // VAIN_COST)
    # The one that was refused above is the first of them.
    assert [credit.take() for _ in range(REST_WAITS + 1)] == [False] * REST_WAITS + [True]
    credit.on_vain()
    assert not credit.take()


def test_what_pays_only_every_other_time_does_not_go_on() -> None:
    credit, count = Credit(), 0
    while credit.take() and count < 1000:
        (credit.on_paid if count % 2 else credit.on_vain)()
        count += 1
    assert count < MOST_CREDIT


def test_it_is_over_when_nobody_waits_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake_module, "AWAKE_S", 60.0)

    async def scenario() -> None:
        waiting = [True]
        awake = Awake(lambda: bool(waiting), core_count=2)
        assert not awake.is_on
        awake.stay()
        await turns(5)
        assert awake.is_on
        waiting.clear()
        await turns(2)
        assert not awake.is_on
        # It has paid, so it is on again for the next one.
        waiting.append(True)
        awake.stay()
        assert awake.is_on
        waiting.clear()
        await until(lambda: not awake.is_on)

    asyncio.run(scenario())


def test_it_is_over_when_its_time_is_and_rests_after_some_of_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake_module, "AWAKE_S", 0.0)

    async def scenario() -> None:
        awake = Awake(lambda: True, core_count=2)
        for _ in range(-(-MOST_CREDIT // VAIN_COST)):
            awake.stay()
            assert awake.is_on
            await turns(2)
            assert not awake.is_on
        awake.stay()
        assert not awake.is_on

    asyncio.run(scenario())


def test_who_begins_to_wait_meanwhile_has_his_time_too_and_costs_no_second_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(awake_module, "AWAKE_S", 60.0)

    async def scenario() -> None:
        looks = 0

        def is_waited() -> bool:
            nonlocal looks
            looks += 1
            return looks < 4

        awake = Awake(is_waited, core_count=2)
        awake.stay()
        awake.stay()
        await until(lambda: not awake.is_on)
        await turns(3)
        assert looks == 4

    asyncio.run(scenario())


def test_on_a_machine_with_one_core_it_never_begins() -> None:
    async def scenario() -> None:
        awake = Awake(lambda: True, core_count=1)
        awake.stay()
        assert not awake.is_on

    asyncio.run(scenario())
