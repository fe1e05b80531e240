from prometheus_client import CollectorRegistry, generate_latest

from tanist.broker.operating.ha_metrics import ha_metrics
from tanist.metrics import OnDemand, Sampler
from tanist.metrics.names import Process
from tanist.model.offsets import LogOffset
from tanist.protocol.bodies.replication import HAClientView, HAConnectionView, HARuntimeInfo

NODE = 'broker_id="0",cluster="C",node_id="broker-a",node_type="broker"'


def shown(status: HARuntimeInfo) -> set[str]:
    registry = CollectorRegistry()
    registry.register(
        OnDemand(lambda: ha_metrics(Sampler(Process.BROKER, "C", "broker-a", str(status.broker_id)), status))
    )
    lines = generate_latest(registry).decode().splitlines()
    return {line for line in lines if not line.startswith("#")}


def test_a_master_shows_each_slave_and_who_was_refused() -> None:
    slave = HAConnectionView(
        addr="10.0.0.1:5",
        acked_to=LogOffset(90),
        lag_bytes=10,
        is_in_sync=True,
        bytes_per_second=7,
        broker_id=1,
        lag_ms=3,
        sent_bytes=200,
    )
    lines = shown(
        HARuntimeInfo(
            is_master=True,
            broker_name="broker-a",
            broker_id=0,
            slaves=[slave],
            in_sync_slave_count=1,
            refused_counts={"no hello": 4},
        )
    )
    of_slave = f'{NODE},slave_address="10.0.0.1:5",slave_id="1"'
    of_kind = NODE.replace(",node_id", ',kind="no hello",node_id')
    assert lines == {
        f"tanist_is_master{{{NODE}}} 1.0",
        f"tanist_ha_slaves{{{NODE}}} 1.0",
        f"tanist_ha_in_sync_slaves{{{NODE}}} 1.0",
        f"tanist_ha_slave_lag_bytes{{{of_slave}}} 10.0",
        f"tanist_ha_slave_lag_milliseconds{{{of_slave}}} 3.0",
        f"tanist_ha_slave_acked_offset{{{of_slave}}} 90.0",
        f"tanist_ha_slave_bytes_per_second{{{of_slave}}} 7.0",
        f"tanist_ha_slave_sent_bytes_total{{{of_slave}}} 200.0",
        f"tanist_ha_refused_peers_total{{{of_kind}}} 4.0",
    }


def test_a_slave_that_follows_nobody_has_no_lag_to_show() -> None:
    client = HAClientView(is_refused=True)
    lines = shown(HARuntimeInfo(is_master=False, broker_name="broker-a", broker_id=0, client=client))
    assert lines == {
        f"tanist_is_master{{{NODE}}} 0.0",
        f"tanist_ha_following{{{NODE}}} 0.0",
        f"tanist_ha_follower_refused{{{NODE}}} 1.0",
        f"tanist_ha_follower_bytes_per_second{{{NODE}}} 0.0",
    }


def test_a_slave_that_follows_shows_how_far_it_is_behind() -> None:
    client = HAClientView(state="transfer", is_refused=False, lag_bytes=0, bytes_per_second=5)
    lines = shown(HARuntimeInfo(is_master=False, broker_name="broker-a", broker_id=0, client=client))
    assert f"tanist_ha_following{{{NODE}}} 1.0" in lines
    assert f"tanist_ha_follower_lag_bytes{{{NODE}}} 0.0" in lines
