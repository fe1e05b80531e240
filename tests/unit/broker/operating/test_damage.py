from types import SimpleNamespace
from typing import Any, cast

import pytest

from tanist.broker.operating.damage import damage_lines, first_damage, tell_damage
from tanist.broker.state import BrokerState
from tanist.store.scrub import Damage

RECORD = Damage(700, "commitlog/0 at byte 700: the body does not match its checksum", is_in_queue=False)
ENTRY = Damage(700, "queue T/0 offset 5: it says 1", is_in_queue=True)


def _slave(number: int, *, held_from: int = 0, acked_to: int = 1000) -> SimpleNamespace:
    return SimpleNamespace(
        peer=f"10.0.0.{number}:1", broker_id=number, held_from=held_from, acked_to=acked_to
    )


def _state(
    damage: Damage, *slaves: SimpleNamespace, is_slave: bool = False, members: set[int] | None = None
) -> BrokerState:
    reign = None if members is None else SimpleNamespace(sync_state=SimpleNamespace(members=members))
    state: Any = SimpleNamespace(
        settings=SimpleNamespace(address="10.0.0.9:10911", is_slave=is_slave),
        scrub=SimpleNamespace(damage=[damage]),
        writer=SimpleNamespace(reign=reign),
        replication=SimpleNamespace(replicas=list(slaves)),
    )
    return cast("BrokerState", state)


@pytest.mark.parametrize(
    ("state", "way_out"),
    [
        pytest.param(
            _state(RECORD, is_slave=True), "tanist admin rebuildSlave -b 10.0.0.9:10911", id="slave"
        ),
        pytest.param(_state(ENTRY, is_slave=True), "delete the folders consumequeue and index", id="queue"),
        pytest.param(_state(RECORD), "restore the file from a backup", id="alone"),
        pytest.param(_state(RECORD, _slave(1)), "slave 10.0.0.1:1 has it: stop both brokers", id="fixed"),
        pytest.param(
            _state(RECORD, _slave(1, held_from=701), _slave(2)), "slave 10.0.0.2:1 has it", id="began-later"
        ),
        pytest.param(_state(RECORD, _slave(1, acked_to=700)), "from a backup", id="behind"),
        pytest.param(
            _state(RECORD, _slave(2), _slave(3), members={1, 3}), "replica 3 has it: make that", id="member"
        ),
        pytest.param(_state(RECORD, _slave(2), members={1}), "from a backup", id="no-member"),
    ],
)
def test_damage_is_told_with_the_way_out_that_there_is(state: BrokerState, way_out: str) -> None:
    (line,) = damage_lines(state)
    assert line.startswith(f"{state.scrub.damage[0]}; ")
    assert way_out in line
    assert first_damage(state) == line


def test_damage_is_one_critical_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    tell_damage(_state(RECORD), RECORD)
    (line,) = caplog.records
    assert line.levelname == "CRITICAL"
    assert "commitlog/0 at byte 700" in line.getMessage()
