"""Samples: whose they are, how many at most, and that every name is told once."""

from prometheus_client import CollectorRegistry, Metric

from tanist.metrics import OnDemand, Sampler, names, together
from tanist.metrics.names import ALL, MetricName, Process
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


def test_parts_of_one_process_tell_a_metric_once_with_the_samples_of_all() -> None:
    def part(name: MetricName, figure: int) -> CollectorRegistry:
        sampler = Sampler(Process.NAME_SERVER, str(figure))
        registry = CollectorRegistry()
        registry.register(OnDemand(lambda: [sampler.one(name, figure), *sampler.end()]))
        return registry

    first, second = part(names.NAMESERVER_TOPICS, 1), part(names.NAMESERVER_GROUPS, 2)
    for _ in range(2):
        told = [(metric.name, len(metric.samples)) for metric in together(first, second).collect()]
        exported = (names.NAMESERVER_TOPICS, names.BUILD, names.LEFT_OUT, names.NAMESERVER_GROUPS)
        assert told == list(zip((name.exported_name for name in exported), (1, 2, 0, 1), strict=True))


def test_no_two_metrics_have_one_name() -> None:
    assert len({name.exported_name for name in ALL}) == len(ALL)
    assert all(name.meaning.endswith(".") for name in ALL)


def test_a_counter_is_exported_as_a_total() -> None:
    assert names.MESSAGES_IN.exported_name == "rocketmq_messages_in_total"
    assert names.HA_REFUSED.exported_name == "tanist_ha_refused_peers_total"
    assert names.LOG_END.exported_name == "tanist_log_end_offset"
