"""Samples: whose they are, how many at most, and that every name is told once."""

from prometheus_client import Metric

from tanist.metrics import Sampler, names
from tanist.metrics.names import ALL, Process
from tanist.metrics.sampling import MAX_SERIES


def values(metric: Metric) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in metric.samples}


def test_a_sample_says_whose_it_is() -> None:
    sampler = Sampler(Process.BROKER, "C", "broker-a", "0")
    (sample,) = sampler.one(names.LOG_END, 7).samples
    assert sample.labels == {
        "cluster": "C",
        "node_type": "broker",
        "node_id": "broker-a",
        "broker_id": "0",
    }


def test_what_is_not_known_has_no_sample() -> None:
    assert Sampler(Process.NAME_SERVER, "n").one(names.NAMESERVER_TOPICS, None).samples == []


def test_of_too_many_series_the_greatest_are_told_and_the_rest_counted() -> None:
    sampler = Sampler(Process.BROKER, "C", "b", "0")
    told = sampler.many(names.MESSAGES_IN, {(f"T{n}", "false"): n for n in range(MAX_SERIES + 5)})
    assert len(told.samples) == MAX_SERIES
    assert min(sample.value for sample in told.samples) == 5
    *_, left_out = sampler.end()
    assert values(left_out)["C", "broker", "b", "0", "rocketmq_messages_in_total"] == 5


def test_no_two_metrics_have_one_name() -> None:
    assert len({name.exported_name for name in ALL}) == len(ALL)
    assert all(name.meaning.endswith(".") for name in ALL)


def test_a_counter_is_exported_as_a_total() -> None:
    assert names.MESSAGES_IN.exported_name == "rocketmq_messages_in_total"
    assert names.HA_REFUSED.exported_name == "tanist_ha_refused_peers_total"
    assert names.LOG_END.exported_name == "tanist_log_end_offset"
