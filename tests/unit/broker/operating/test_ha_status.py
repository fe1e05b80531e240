from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from tanist.broker.operating.ha_status import ha_status
from tanist.broker.settings import BrokerRole
from tanist.broker.state import BrokerState
from tanist.ha.follower import Follower, FollowerState, FollowerStatus
from tanist.ha.replicas import Dialect, RefusedPeer
from tanist.ha.settings import HaAuthentication, HaSettings
from tanist.ha.throttle import Rate
from tests.support.broker_tables import SETTINGS, open_state
from tests.support.messages import make_message
from tests.support.played_slaves import make_replica

SLAVE = msgspec.structs.replace(SETTINGS, broker_role=BrokerRole.SLAVE, broker_id=2)
MASTER_HA = "10.0.0.9:10912"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[BrokerState]:
    """A master with one message."""
    state = open_state(tmp_path)
    with state.store:
        state.store.append(make_message())
        yield state


def follow(state: BrokerState, status: FollowerStatus) -> None:
    follower = SimpleNamespace(
        status=status, rate=Rate(), is_transferring=status.state is FollowerState.TRANSFER
    )
    state.replication.follower = cast("Follower", follower)


def test_without_a_slave_the_lag_is_unknown(state: BrokerState) -> None:
    status = ha_status(state)
    assert (status.is_master, status.role, status.broker_id) == (True, "ASYNC_MASTER", 0)
    assert status.log_end == state.store.log.log_end > 0
    assert (status.slaves, status.in_sync_slave_count, status.lag_bytes) == ([], 0, None)


@pytest.mark.behaviour("S5-23")
def test_each_slave_is_told_with_its_address_offsets_lag_and_start(state: BrokerState) -> None:
    log_end = state.store.log.log_end
    replica = make_replica(3, acked_to=40)
    replica.acked_to = 60
    state.replication.replicas.join(replica)
    state.replication.replicas.join(make_replica(None, acked_to=log_end, counts=False, peer="10.0.0.4:5"))
    status = ha_status(state)
    first, second = status.slaves
    assert (first.addr, first.broker_id, first.dialect) == ("10.0.0.3:40112", 3, "tanist")
    assert (first.requested_to, first.sent_from, first.acked_to) == (40, 40, 60)
    assert (first.lag_bytes, first.lag_ms, first.counts) == (log_end - 60, 0, True)
    assert (first.ack_kind, first.since_ms) == ("received", 0)
    assert (second.broker_id, second.dialect, second.counts, second.lag_bytes) == (None, "classic", False, 0)
    assert (status.in_sync_slave_count, status.lag_bytes) == (2, 0)


def test_the_lag_is_never_negative(state: BrokerState) -> None:
    state.replication.replicas.join(make_replica(1, acked_to=state.store.log.log_end + 1_000))
    status = ha_status(state)
    assert (status.lag_bytes, status.slaves[0].lag_bytes) == (0, 0)


def test_a_slave_too_far_behind_is_not_in_step(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    with state.store:
        state.replication.replicas.join(make_replica(1))
        state.replication.replicas._fallbehind_max_bytes = 1
        state.store.append(make_message())
        status = ha_status(state)
        assert (status.slaves[0].is_in_sync, status.in_sync_slave_count) == (False, 0)


@pytest.mark.behaviour("S5-24")
def test_who_was_refused_is_told_with_what_it_sent_and_why_and_counted(state: BrokerState) -> None:
    replicas = state.replication.replicas
    for _ in range(100):
        replicas.refuse(RefusedPeer("10.0.0.66:1", "no hello", "3939393939", 7), kind="no hello")
    replicas.refuse(RefusedPeer("10.0.0.1:2", "ack 900 is behind", "900", 8), kind="impossible ack")
    status = ha_status(state)
    assert status.refused_counts == {"no hello": 100, "impossible ack": 1}
    assert len(status.refused) == 64
    newest = status.refused[-1]
    assert (newest.addr, newest.reason, newest.received, newest.at_ms) == (
        *("10.0.0.1:2", "ack 900 is behind"),
        *("900", 8),
    )


@pytest.mark.parametrize(
    ("ha", "told"),
    [
        (HaSettings(), "none"),
        (HaSettings(ha_secret="correct horse battery"), "secret"),
        (HaSettings(ha_authentication=HaAuthentication.TLS), "tls"),
    ],
)
def test_what_a_peer_has_to_prove_is_told_as_it_is(state: BrokerState, ha: HaSettings, told: str) -> None:
    state.ha = ha
    assert ha_status(state).authentication == told


@pytest.fixture
def slave(tmp_path: Path) -> Iterator[BrokerState]:
    state = open_state(tmp_path, SLAVE)
    with state.store:
        state.store.append(make_message())
        yield state


def test_a_slave_tells_how_far_it_follows(slave: BrokerState) -> None:
    log_end = slave.store.log.log_end
    follow(
        slave,
        FollowerStatus(
            state=FollowerState.TRANSFER,
            dialect=Dialect.TANIST,
            master_address=MASTER_HA,
            master_log_end=log_end + 50,
            last_read_ms=7,
            last_write_ms=8,
        ),
    )
    status = ha_status(slave)
    assert (status.is_master, status.role, status.broker_id) == (False, "SLAVE", 2)
    client = status.client
    assert (client.master_addr, client.state) == (MASTER_HA, "transfer")
    assert (client.log_end, client.master_log_end, client.lag_bytes) == (log_end, log_end + 50, 50)
    assert (client.last_read_timestamp_ms, client.last_write_timestamp_ms) == (7, 8)
    assert (client.is_refused, client.reason) == (False, None)


def test_the_lag_behind_a_master_that_does_not_tell_its_end_is_unknown(slave: BrokerState) -> None:
    follow(
        slave,
        FollowerStatus(
            state=FollowerState.TRANSFER,
            master_address=MASTER_HA,
            master_log_end=1,
            dialect=Dialect.CLASSIC,
        ),
    )
    client = ha_status(slave).client
    assert (client.state, client.master_log_end, client.lag_bytes) == ("transfer", None, None)


@pytest.mark.behaviour("S5-12")
def test_a_slave_that_does_not_fit_is_shown_as_such_and_not_as_healthy(slave: BrokerState) -> None:
    reason = "refused: your log is not a prefix of mine; rebuildSlave"
    follow(
        slave,
        FollowerStatus(
            state=FollowerState.PAUSED,
            master_address=MASTER_HA,
            failure=reason,
            is_refused=True,
            master_log_end=10_000,
        ),
    )
    client = ha_status(slave).client
    assert (client.is_refused, client.reason) == (True, reason)
    # What the master said before is no news any more.
    assert (client.master_log_end, client.lag_bytes) == (None, None)
