"""Which replicas a group has."""

from collections.abc import Iterable

import msgspec
import pytest

from tanist.controller import registering
from tanist.controller.decisions import Decision
from tanist.controller.group_record import GroupRecord
from tanist.controller.leases import Leases
from tanist.controller.live_table import Live
from tanist.controller.registering import MAX_GROUP_REPLICAS
from tanist.errors import ResponseError
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.controller import (
    ApplyBrokerIdRequest,
    CleanBrokerDataRequest,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
    RegisterReplicaRequest,
    RegisterReplicaResponse,
)
from tests.support.reigning import NOW_S, group, live, replica

CLEANED = GroupRecord(cluster="c", broker_name="b", epoch=4, set_epoch=7, lease_ms=3_000)
R = ResponseCode


def wants(broker_id: int, code: str = "127.0.0.1:9;5", cluster: str = "c") -> ApplyBrokerIdRequest:
    return ApplyBrokerIdRequest(
        cluster_name=cluster, broker_name="b", applied_broker_id=broker_id, register_check_code=code
    )


def comes(broker_id: int, address: str | None = None, cluster: str = "c") -> RegisterReplicaRequest:
    return RegisterReplicaRequest(
        cluster_name=cluster,
        broker_name="b",
        broker_id=broker_id,
        broker_address=address or f"127.0.0.1:{broker_id}",
    )


def register(
    record: GroupRecord | None,
    request: RegisterReplicaRequest,
    *,
    is_there: bool = True,
    held_by: Live | None = None,
) -> Decision:
    return registering.register(
        record, request, held_by=held_by, is_master_there=is_there, ha_address="127.0.0.1:91"
    )


def clean(
    record: GroupRecord | None,
    ids: str | None = None,
    *,
    is_forced: bool = False,
    alive: Iterable[int] = (),
    cluster: str | None = "c",
    is_lease_running: bool = False,
) -> Decision:
    request = CleanBrokerDataRequest(
        cluster_name=cluster, broker_name="b", broker_ids=ids, is_clean_living_broker=is_forced
    )
    return registering.clean(record, request, alive=frozenset(alive), is_lease_running=is_lease_running)


def test_the_next_id_is_one_for_a_new_group_and_is_not_reserved() -> None:
    request = GetNextBrokerIdRequest(cluster_name="c", broker_name="b")
    for record, expected in ((None, 1), (CLEANED, 1), (group(), 4)):
        decision = registering.next_id(record, request)
        assert decision.answer.header == GetNextBrokerIdResponse(
            cluster_name="c", broker_name="b", next_broker_id=expected
        )
        assert decision.record is None


def test_the_first_id_of_a_group_is_one() -> None:
    decision = registering.apply_id(None, wants(1))
    assert decision.record is not None
    assert decision.record.replicas[1].address == "127.0.0.1:9"
    assert (decision.record.cluster, decision.record.next_id, decision.record.epoch) == ("c", 2, 0)
    with pytest.raises(ResponseError) as refusal:
        registering.apply_id(None, wants(2))
    assert refusal.value.code == R.CONTROLLER_BROKER_ID_INVALID


def test_who_shows_the_same_check_code_has_the_id_already() -> None:
    taken = registering.apply_id(group(), wants(4)).record
    assert taken is not None
    assert taken.next_id == 5
    again = registering.apply_id(taken, wants(4))
    assert again.answer.code == R.SUCCESS
    assert again.record is None
    with pytest.raises(ResponseError, match=r"127\.0\.0\.1:9 has it") as refusal:
        registering.apply_id(taken, wants(4, "127.0.0.1:8;6"))
    assert refusal.value.code == R.CONTROLLER_BROKER_ID_INVALID


def test_an_id_that_was_skipped_is_not_offered_to_another_later() -> None:
    skipped = registering.apply_id(group(), wants(9)).record
    assert skipped is not None
    assert skipped.next_id == 10


@pytest.mark.parametrize("broker_id", [0, -1, 4 + MAX_GROUP_REPLICAS + 1, (1 << 63) - 2])
def test_ids_are_positive_and_leave_room_for_the_next(broker_id: int) -> None:
    with pytest.raises(ResponseError) as refusal:
        registering.apply_id(group(), wants(broker_id))
    assert refusal.value.code == R.CONTROLLER_BROKER_ID_INVALID


def test_a_group_does_not_grow_without_bound() -> None:
    full = group(ids=range(1, MAX_GROUP_REPLICAS + 1))
    with pytest.raises(ResponseError, match="128 replicas"):
        registering.apply_id(full, wants(MAX_GROUP_REPLICAS + 1))
    for long in (wants(1, "x" * 600), wants(1, ""), wants(1, ";5")):
        with pytest.raises(ResponseError, match="512 characters") as refusal:
            registering.apply_id(None, long)
        assert refusal.value.code == R.CONTROLLER_INVALID_REQUEST


def test_a_broker_of_another_cluster_gets_nothing_of_a_group() -> None:
    requests = (
        lambda: registering.next_id(group(), GetNextBrokerIdRequest(cluster_name="d", broker_name="b")),
        lambda: registering.apply_id(group(), wants(4, cluster="d")),
        lambda: register(group(), comes(2, cluster="d")),
        lambda: clean(group(master=None), cluster="d", is_forced=True),
    )
    for request in requests:
        with pytest.raises(ResponseError, match="brokerClusterName") as refusal:
            request()
        assert refusal.value.code == R.CONTROLLER_INVALID_REQUEST


def test_who_has_no_id_can_not_register() -> None:
    for record in (None, CLEANED, group()):
        with pytest.raises(ResponseError) as refusal:
            register(record, comes(9))
        assert refusal.value.code == R.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED


def test_a_replica_that_registers_is_told_the_master_and_the_set() -> None:
    decision = register(group(), comes(2))
    assert decision.record is None
    assert decision.answer.header == RegisterReplicaResponse(
        cluster_name="c",
        broker_name="b",
        master_broker_id=1,
        master_address="127.0.0.1:1",
        master_epoch=4,
        sync_state_set_epoch=7,
        master_ha_address="127.0.0.1:91",
    )
    body = decode_java_json(decision.answer.body, SyncStateSet)
    assert body == SyncStateSet(broker_ids=frozenset({1, 2}), epoch=7)


def test_a_master_that_is_gone_is_not_named() -> None:
    decision = register(group(), comes(2), is_there=False)
    assert decision.answer.header == RegisterReplicaResponse(cluster_name="c", broker_name="b")


def test_a_replica_that_moved_keeps_its_id_and_its_check_code() -> None:
    moved = register(group(), comes(2, "127.0.0.1:22")).record
    assert moved is not None
    assert moved.replicas[2] == msgspec.structs.replace(replica(2), address="127.0.0.1:22")
    assert moved.master_id == 1


def test_a_master_that_registers_is_never_told_that_it_is_master() -> None:
    decision = register(group(), comes(1))
    assert decision.answer.header == RegisterReplicaResponse(cluster_name="c", broker_name="b")
    assert decision.record is None


def test_a_master_without_a_session_that_registers_was_started_anew_and_reigns_no_more() -> None:
    record = register(group(session=None), comes(1)).record
    assert record is not None
    assert (record.master_id, record.epoch, record.sync_state_set) == (None, 4, {1, 2})


def test_nobody_else_is_taken_for_a_replica_that_may_be_serving_elsewhere() -> None:
    with pytest.raises(ResponseError, match=r"alive at 127\.0\.0\.1:2: .* delete brokerIdentity") as refusal:
        register(group(), comes(2, "127.0.0.1:99"), held_by=live(2))
    assert refusal.value.code == R.CONTROLLER_BROKER_ID_INVALID
    assert register(group(), comes(2), held_by=live(2)).record is None
    # One without a session is gone when it is started anew.
    moved = register(group(), comes(2, "127.0.0.1:99"), held_by=live(2, session_id=None)).record
    assert moved is not None
    assert moved.replicas[2].address == "127.0.0.1:99"


def test_a_group_that_is_cleaned_away_keeps_its_epochs() -> None:
    assert clean(group(master=None)).record == CLEANED
    begun = registering.apply_id(CLEANED, wants(1)).record
    assert begun is not None
    assert (begun.epoch, begun.set_epoch, begun.has_reigned) == (4, 7, False)


def test_a_group_that_begins_anew_waits_for_as_long_as_the_lease_before_it_may_run() -> None:
    cleaned = clean(group(lease_ms=60_000), is_forced=True, alive={1}).record
    record = registering.apply_id(cleaned, wants(1)).record
    leases = Leases()
    for each in (cleaned, record):
        assert each is not None
        leases.begin([each], now_s=NOW_S)
        assert leases.end_s(each) == NOW_S + 60


def test_a_group_with_a_master_is_cleaned_only_by_force() -> None:
    with pytest.raises(ResponseError) as refusal:
        clean(group())
    assert refusal.value.code == R.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
    assert clean(group(), is_forced=True, cluster=None, alive={1}).record == CLEANED


def test_replicas_that_are_gone_are_cleaned_one_by_one() -> None:
    record = clean(group(), "2;3", alive={1}).record
    assert record is not None
    assert (set(record.replicas), record.sync_state_set, record.master_id) == ({1}, {1}, 1)
    assert record.next_id == 4
    without_master = clean(group(), "1").record
    assert without_master is not None
    assert (without_master.master_id, without_master.sync_state_set) == (None, {2})
    assert clean(group(master=None), "1;2;3").record == CLEANED


def test_a_group_whose_set_was_cleaned_away_has_no_first_election_again() -> None:
    record = clean(group(), "1;2").record
    assert record is not None
    assert record.sync_state_set == frozenset()
    assert record.has_reigned


@pytest.mark.parametrize("ids", ["1;2", "2;x", "1;;2"])
def test_cleaning_is_refused_if_one_is_alive_or_no_id(ids: str) -> None:
    with pytest.raises(ResponseError) as refusal:
        clean(group(), ids, alive={2})
    assert refusal.value.code == R.CONTROLLER_INVALID_CLEAN_BROKER_METADATA


def test_a_master_whose_lease_may_run_is_not_cleaned() -> None:
    with pytest.raises(ResponseError, match="replica 1 of b is alive"):
        clean(group(), "1", is_lease_running=True)
    assert clean(group(), "3", is_lease_running=True).record is not None


def test_nothing_can_be_cleaned_of_a_group_that_is_not_there() -> None:
    for record in (None, CLEANED):
        with pytest.raises(ResponseError) as refusal:
            clean(record, is_forced=True)
        assert refusal.value.code == R.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
