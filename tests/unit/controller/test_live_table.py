"""Which replicas are taken for alive, and for how long."""

from typing import Any

import pytest

from tanist.controller.live_table import MAX_TIMEOUT_MS, MIN_TIMEOUT_MS, LiveTable
from tanist.errors import ResponseError
from tanist.protocol.codes import ResponseCode
from tests.support.reigning import NAME, NOW_S, heartbeat


@pytest.fixture
def table() -> LiveTable:
    return LiveTable()


def beat(table: LiveTable, broker_id: int = 1, *, now_s: float = NOW_S, **fields: object) -> bool:
    connection = fields.pop("connection", "wire")
    """A heartbeat; whether it was news."""
    return table.on_heartbeat(heartbeat(broker_id, **fields), connection, now_s=now_s)[1]


def test_a_replica_is_alive_for_as_long_as_it_said(table: LiveTable) -> None:
    assert beat(table, heartbeat_timeout_ms=3_000)
    assert table.next_deadline_s == NOW_S + 3
    assert table.on_tick(now_s=NOW_S + 2.999) == []
    assert set(table.members(NAME)) == {1}
    (gone,) = table.on_tick(now_s=NOW_S + 3)
    assert gone.broker_id == 1
    assert table.members(NAME) == {}
    assert (table.next_deadline_s, table.count) == (None, 0)


def test_a_heartbeat_puts_the_end_off(table: LiveTable) -> None:
    assert beat(table)
    assert not beat(table, now_s=NOW_S + 2)
    assert table.next_deadline_s == NOW_S + 5
    assert table.on_tick(now_s=NOW_S + 3) == []
    assert table.count == 1


def test_the_next_to_fall_silent_is_waited_for(table: LiveTable) -> None:
    beat(table, 1, heartbeat_timeout_ms=3_000)
    beat(table, 2, heartbeat_timeout_ms=1_000)
    assert table.next_deadline_s == NOW_S + 1
    assert [gone.broker_id for gone in table.on_tick(now_s=NOW_S + 1)] == [2]


def test_a_replica_that_gives_no_timeout_has_ten_seconds(table: LiveTable) -> None:
    beat(table, heartbeat_timeout_ms=None)
    assert table.next_deadline_s == NOW_S + 10


def test_the_newest_heartbeat_replaces_epoch_and_offset_downwards_too(table: LiveTable) -> None:
    beat(table, epoch=5, log_end=900)
    beat(table, epoch=4, log_end=100)
    assert (table.members(NAME)[1].epoch, table.members(NAME)[1].log_end) == (4, 100)


def test_a_replica_that_comes_back_or_was_started_anew_is_news(table: LiveTable) -> None:
    assert beat(table)
    assert not beat(table)
    assert beat(table, session_id="another")
    table.on_tick(now_s=NOW_S + 3)
    assert beat(table, session_id="another", now_s=NOW_S + 3)


def test_a_replica_without_a_session_is_gone_when_its_newest_connection_is(table: LiveTable) -> None:
    beat(table, session_id=None, connection="old")
    beat(table, session_id=None, connection="new")
    assert table.on_connection_lost("old") == []
    assert [gone.broker_id for gone in table.on_connection_lost("new")] == [1]
    assert table.on_connection_lost("new") == []
    assert table.count == 0


def test_all_that_share_a_connection_are_gone_with_it(table: LiveTable) -> None:
    beat(table, 1, session_id=None)
    beat(table, 2, session_id="")
    beat(table, 3)
    assert {gone.broker_id for gone in table.on_connection_lost("wire")} == {1, 2}
    assert set(table.members(NAME)) == {3}


def test_a_replica_with_a_session_outlives_its_connection(table: LiveTable) -> None:
    beat(table)
    assert table.on_connection_lost("wire") == []
    assert table.on_tick(now_s=NOW_S + 3) != []


def test_a_report_of_its_death_ends_a_session_for_good(table: LiveTable) -> None:
    beat(table, session_id="s")
    assert [gone.broker_id for gone in table.on_dead("s")] == [1]
    assert table.on_dead("s") == []
    assert table.is_dead("s")
    with pytest.raises(ResponseError) as refusal:
        beat(table, session_id="s")
    assert refusal.value.code == ResponseCode.CONTROLLER_BROKER_NOT_ALIVE
    assert table.count == 0
    assert beat(table, session_id="next")


def test_a_replica_that_registers_has_a_new_life(table: LiveTable) -> None:
    beat(table, 1, session_id=None)
    beat(table, 2)
    table.on_registered(NAME, 1)
    table.on_registered(NAME, 2)
    table.on_registered(NAME, 3)
    assert set(table.members(NAME)) == {2}


def test_silence_that_we_slept_through_is_held_against_nobody(table: LiveTable) -> None:
    beat(table, 1)
    beat(table, 2, now_s=NOW_S + 1)
    assert table.on_tick(now_s=NOW_S + 20) == []
    beat(table, 1, now_s=NOW_S + 20)
    assert table.next_deadline_s is not None
    assert NOW_S + 20 < table.next_deadline_s < NOW_S + 21
    assert [gone.broker_id for gone in table.on_tick(now_s=table.next_deadline_s)] == [2]
    assert set(table.members(NAME)) == {1}


def test_a_controller_that_is_always_late_still_misses_the_dead(table: LiveTable) -> None:
    beat(table)
    assert table.on_tick(now_s=NOW_S + 3 + 5) == []
    assert table.next_deadline_s is not None
    assert [gone.broker_id for gone in table.on_tick(now_s=table.next_deadline_s + 5)] == [1]


@pytest.mark.parametrize(
    "fields",
    [
        {"broker_id": None},
        {"broker_id": 0},
        {"heartbeat_timeout_ms": MIN_TIMEOUT_MS - 1},
        {"heartbeat_timeout_ms": MAX_TIMEOUT_MS + 1},
        {"heartbeat_timeout_ms": -1},
    ],
)
def test_a_heartbeat_that_makes_no_sense_changes_nothing(table: LiveTable, fields: dict[str, object]) -> None:
    with pytest.raises(ResponseError) as refusal:
        table.on_heartbeat(heartbeat(**fields), "wire", now_s=NOW_S)  # pyright: ignore[reportArgumentType]
    assert refusal.value.code == ResponseCode.CONTROLLER_INVALID_REQUEST
    assert table.count == 0


def test_strangers_do_not_fill_the_memory(table: LiveTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tanist.controller.live_table.MAX_REPLICAS", 2)
    beat(table, 1)
    beat(table, 2)
    with pytest.raises(ResponseError) as refusal:
        beat(table, 3)
    assert refusal.value.code == ResponseCode.SYSTEM_BUSY
    assert not beat(table, 2)


@pytest.mark.parametrize("field", ["session_id", "ha_address", "broker_addr", "broker_name", "cluster_name"])
def test_a_heartbeat_with_a_text_too_long_to_be_kept_is_refused(table: LiveTable, field: str) -> None:
    longest: dict[str, Any] = {field: "x" * 512}
    too_long: dict[str, Any] = {field: "x" * 513}
    beat(table, **longest)
    with pytest.raises(ResponseError, match="have 1 to 512 characters, not 513") as refusal:
        beat(table, 2, **too_long)
    assert refusal.value.code == ResponseCode.CONTROLLER_INVALID_REQUEST
    assert table.count == 1


def test_a_session_too_long_to_be_one_is_not_remembered_as_dead(table: LiveTable) -> None:
    with pytest.raises(ResponseError):
        table.on_dead("x" * 513)
    assert not table.is_dead("x" * 513)


def test_of_what_a_replica_lacks_or_has_damaged_the_beginning_is_kept(table: LiveTable) -> None:
    beat(table, tables_gap="x" * 100_000, damage="y" * 100_000)
    live = table.members(NAME)[1]
    assert (live.tables_gap, live.damage) == ("x" * 512, "y" * 512)


def test_each_standstill_of_ours_gives_them_a_moment_more(table: LiveTable) -> None:
    for stop_s in (NOW_S, NOW_S + 100):
        beat(table, now_s=stop_s)
        assert table.on_tick(now_s=stop_s + 9) == []
        beat(table, now_s=stop_s + 9.1)
        assert table.on_tick(now_s=stop_s + 9.25) == []
    assert len(table.on_tick(now_s=NOW_S + 112.1)) == 1
