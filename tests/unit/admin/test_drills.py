"""When a drill is safe, and what its clients saw."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Self, cast

import msgspec
import pytest

from tanist.admin.asking import Access
from tanist.admin.drills import drill as drills
from tanist.admin.drills import probe as probes
from tanist.admin.drills.drill import Drill, DrillStuck
from tanist.admin.drills.probe import Probe, longest_gap_ms, probing
from tanist.admin.drills.readiness import Member, Readiness, judge
from tanist.admin.parallel import Told
from tanist.client.session.wire import Wire
from tanist.errors import ResponseError
from tanist.model.route import BrokerData, ClusterInfo
from tanist.protocol.bodies.replication import ControlledView, HAClientView, HAConnectionView, HARuntimeInfo


def _link(**changes: object) -> HAConnectionView:
    link = HAConnectionView(addr="s:1", acked_to=msgspec.convert(9, int), lag_bytes=0, is_in_sync=True)  # pyright: ignore[reportArgumentType]
    return msgspec.structs.replace(link, **changes)


def _controlled(replica_id: int, *, in_step: list[int], reasons: list[str] | None = None) -> ControlledView:
    return ControlledView(
        state="serves",
        controller="c:1",
        replica_id=replica_id,
        role="MASTER" if replica_id == 1 else "SLAVE",
        sync_state_set=in_step,
        reasons=reasons or [],
    )


def _master(**changes: object) -> Member:
    status = HARuntimeInfo(is_master=True, slaves=[_link()], controlled=_controlled(1, in_step=[1, 2]))
    return Member(0, "m:1", msgspec.structs.replace(status, **changes))


def _slave(**changes: object) -> Member:
    status = HARuntimeInfo(is_master=False, controlled=_controlled(2, in_step=[]))
    return Member(2, "s:1", msgspec.structs.replace(status, **changes))


def test_a_group_in_step_is_ready_and_a_slave_of_the_set_takes_over() -> None:
    ready = judge([_master(), _slave()])
    assert ready.objections == []
    assert ready.successor is not None
    assert (ready.successor.address, ready.controller, ready.is_controlled) == ("s:1", "c:1", True)


def test_nobody_takes_over_who_is_not_in_the_set() -> None:
    ready = judge([_master(controlled=_controlled(1, in_step=[1])), _slave()])
    assert ready.successor is None
    assert "no slave is in the sync state set [1]; wait for one" in ready.objections


def test_whatever_is_wrong_with_a_replica_speaks_against_it() -> None:
    behind, refused = HAClientView(lag_bytes=5 << 20), HAClientView(is_refused=True, reason="another log")
    for members, words in (
        ([_slave()], "no master"),
        ([_master()], "no slave that answers"),
        ([_master(), Member(2, "s:1", None, "refused")], "s:1 does not answer: refused"),
        ([_master(slaves=[_link(is_in_sync=False)]), _slave()], "s:1 is not in step"),
        ([_master(), _slave(client=behind)], "5242880 bytes behind"),
        ([_master(), _slave(client=refused)], "refused by its master: another log"),
        ([_master(controlled=_controlled(1, in_step=[1, 2], reasons=["no lease"])), _slave()], "no lease"),
    ):
        assert words in "; ".join(judge(members).objections)


def test_without_a_controller_the_group_has_fixed_roles() -> None:
    ready = judge([_master(controlled=None), _slave(controlled=None)])
    assert not ready.is_controlled
    assert ready.objections == []


def test_the_longest_gap_counts_from_the_start_and_to_the_end() -> None:
    assert longest_gap_ms([], 1.0, 3.5) == 2500
    assert longest_gap_ms([1.1, 3.0], 1.0, 3.5) == 1900
    assert longest_gap_ms([1.1, 1.2], 1.0, 3.5) == 2300


def test_what_was_acknowledged_and_not_consumed_is_lost_and_what_came_again_is_twice() -> None:
    probe = Probe(0.0)
    probe.acknowledged |= {b"1": 1.0, b"2": 2.0, b"3": 2.5}
    for body, at_s in ((b"1", 1.1), (b"2", 2.1), (b"2", 2.2), (b"9", 2.3)):
        probe.on_consumed(body, at_s)
    probe.on_stopped()
    assert not probe.got_all.is_set()
    seen = probe.seen(3.0)
    assert (seen.sent_count, seen.lost_count, seen.duplicate_count) == (3, 1, 1)
    probe.on_consumed(b"3", 3.0)
    assert probe.got_all.is_set()


class _Client:
    """A producer or a consumer that nothing comes of."""

    def __init__(self, **_: object) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def send(self, _message: object) -> None:
        await asyncio.Event().wait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> object:
        return await asyncio.Event().wait()


def test_what_stops_a_drill_leaves_it_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "Producer", _Client)
    monkeypatch.setattr(probes, "Consumer", _Client)

    async def run() -> None:
        async with probing(Access(), ["n:1"], "T"):
            raise DrillStuck("it stands here")

    with pytest.raises(DrillStuck, match="it stands here"):
        asyncio.run(run())


def test_a_drill_moves_nothing_while_replicas_are_not_in_step_and_tells_what_it_leaves_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ready = judge([_master(), _slave()])
    looks = iter([ready])

    async def look(*_: object) -> tuple[str, Readiness]:
        return "c", next(looks, ready._replace(objections=["s:1 is not in step"]))

    async def made(*_: object, **__: object) -> list[Told[None]]:
        return [Told("m:1", None)]

    async def refused(*_: object, **__: object) -> list[Told[None]]:
        return [Told("m:1", None, ResponseError(1, "no")), Told("n:1", None)]

    async def cluster(*_: object) -> ClusterInfo:
        data = BrokerData(cluster="c", broker_name="g", broker_addrs={0: "m:1"})
        return ClusterInfo(broker_addr_table={"g": data})

    async def elect(*_: object, **__: object) -> None:
        pytest.fail("mastership was moved")

    @asynccontextmanager
    async def flowing(*_: object) -> AsyncGenerator[Probe]:
        yield Probe(0.0, acknowledged={b"%d" % number: 1.0 for number in range(9)})

    for name, played in {
        "look": look,
        "update_topic": made,
        "update_group": made,
        "cluster_info": cluster,
        "delete_topic": refused,
        "delete_group": refused,
        "elect_master": elect,
        "probing": flowing,
    }.items():
        monkeypatch.setattr(drills, name, played)
    steps: list[str] = []
    drill = Drill(
        *(cast("Wire", None), Access(), ["n:1"], "n:1"), broker_name="g", wait_s=0, on_step=steps.append
    )
    with pytest.raises(DrillStuck, match="not in step"):
        asyncio.run(drill.run())
    (left,) = [step for step in steps if step.startswith("could not delete")]
    assert "TANIST_DRILL_g at m:1: no (response code 1); " in left
