"""Who is in step, and what is shown of a group."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from tanist.controller import decisions
from tanist.controller.decisions import Decision
from tanist.controller.group_record import GroupRecord
from tanist.errors import ResponseError
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.controller import (
    AlterSyncStateSetRequest,
    AlterSyncStateSetResponse,
    ReplicaInfoResponse,
)
from tests.support.reigning import group, live

CLEANED = GroupRecord(cluster="c", broker_name="b", epoch=4, set_epoch=7)
R = ResponseCode


def alter(
    record: GroupRecord | None,
    members: Iterable[int],
    *,
    master: int = 1,
    epoch: int = 4,
    set_epoch: int = 7,
    alive: Iterable[int] = (1, 2, 3),
) -> Decision:
    request = AlterSyncStateSetRequest(broker_name="b", master_broker_id=master, master_epoch=epoch)
    proposed = SyncStateSet(broker_ids=frozenset(members), epoch=set_epoch)
    return decisions.alter_set(record, request, proposed, alive={each: live(each) for each in alive})


@pytest.mark.behaviour("S2-49")
def test_the_master_changes_who_is_in_step() -> None:
    decision = alter(group(), {1, 3})
    assert decision.record == msgspec.structs.replace(
        group(), sync_state_set=frozenset({1, 3}), set_epoch=8, member_sessions={1: "s1", 3: "s3"}
    )
    assert decision.answer.header == AlterSyncStateSetResponse(new_sync_state_set_epoch=8)
    body = decode_java_json(decision.answer.body, SyncStateSet)
    assert body == SyncStateSet(broker_ids=frozenset({1, 3}), epoch=8)


def test_the_same_set_has_a_new_epoch_so_that_what_is_on_its_way_comes_too_late() -> None:
    decision = alter(group(), {1, 2})
    assert decision.record == msgspec.structs.replace(
        group(), set_epoch=8, member_sessions={1: "s1", 2: "s2"}
    )


FAILED = R.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED


@pytest.mark.parametrize(
    ("code", "case"),
    [
        (FAILED, {"record": None}),
        (FAILED, {"record": CLEANED}),
        (FAILED, {"members": {1, 2}, "master": 9, "epoch": 1}),
        (FAILED, {"members": {1, 2}, "set_epoch": 6}),
        (R.CONTROLLER_INVALID_MASTER, {"members": {1, 2}, "master": 2}),
        (R.CONTROLLER_INVALID_MASTER, {"master": 2, "epoch": 1, "set_epoch": 1}),
        (R.CONTROLLER_INVALID_MASTER, {"record": group(master=None)}),
        (R.CONTROLLER_FENCED_MASTER_EPOCH, {"epoch": 3, "set_epoch": 1, "members": {9}}),
        (R.CONTROLLER_FENCED_MASTER_EPOCH, {"epoch": 5}),
        (R.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH, {"set_epoch": 6, "members": {9}}),
        (R.CONTROLLER_INVALID_REPLICAS, {"members": {1, 9}}),
        (R.CONTROLLER_BROKER_NOT_ALIVE, {"alive": {1, 2}}),
        (FAILED, {"members": {2, 3}}),
        (FAILED, {"members": set[int]()}),
    ],
)
def test_a_set_is_changed_only_by_its_master_in_its_epoch_and_to_replicas_that_are_there(
    code: int, case: dict[str, Any]
) -> None:
    case = dict(case)
    with pytest.raises(ResponseError) as refusal:
        alter(case.pop("record", group()), case.pop("members", {1, 3}), **case)
    assert refusal.value.code == code


def test_a_replica_asks_who_is_master() -> None:
    answer = decisions.replica_info(group(), "b", is_master_there=True, ha_address="127.0.0.1:91").answer
    assert answer.header == ReplicaInfoResponse(
        master_broker_id=1, master_address="127.0.0.1:1", master_epoch=4, master_ha_address="127.0.0.1:91"
    )
    for record in (group(), group(master=None)):
        answer = decisions.replica_info(record, "b", is_master_there=False, ha_address=None).answer
        assert answer.header == ReplicaInfoResponse(master_epoch=4)
    for record in (None, CLEANED):
        with pytest.raises(ResponseError) as refusal:
            decisions.replica_info(record, "b", is_master_there=False, ha_address=None)
        assert refusal.value.code == R.CONTROLLER_BROKER_METADATA_NOT_EXIST


def test_operators_see_who_is_in_step_and_who_is_alive() -> None:
    view = decisions.group_view(group(), alive={1, 3})
    assert [(each.broker_id, each.is_alive) for each in view.in_sync_replicas] == [(1, True), (2, False)]
    assert [(each.broker_id, each.is_alive) for each in view.not_in_sync_replicas] == [(3, True)]
    assert (view.master_broker_id, view.master_epoch, view.sync_state_set_epoch) == (1, 4, 7)
