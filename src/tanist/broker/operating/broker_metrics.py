"""The figures of one broker as metrics: what is counted, stored, connected and waited for.

All of them are there anyway. Only the age of a message that waits is read from the log, and so only for
so many queues, of those groups that are furthest behind.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import islice

from prometheus_client import Metric

from tanist.broker.delays.rules import TIMER_QUEUE_ID
from tanist.broker.groups import SYSTEM_GROUPS
from tanist.broker.operating.correction_events import correction_metrics
from tanist.broker.operating.ha_metrics import ha_metrics
from tanist.broker.operating.ha_status import ha_status
from tanist.broker.operating.slave_consume_figures import slave_consume_metrics
from tanist.broker.operating.stats import Stat
from tanist.broker.operating.write_metrics import write_metrics
from tanist.broker.queue_look import queue_bounds, store_time_ms
from tanist.broker.state import BrokerState
from tanist.metrics import Sampler, names
from tanist.metrics.names import MetricName, Process
from tanist.model.groups import ConsumeType
from tanist.model.topics import DLQ_PREFIX, RETRY_PREFIX, TIMER_TOPIC
from tanist.protocol.bodies.reset import ReceiptState, ResetState
from tanist.protocol.codes import Version

_STORAGE = ("local", "disk")
_MOST_AGES = 250
"""Queues whose oldest message is looked up: so many reads of the log a scrape costs."""
_MOST_PAIRS = 2000
"""Pairs whose queues are looked at."""
_VERSIONS = {int(version): version.name.lower() for version in Version}
_CONSUME_MODES = {ConsumeType.ACTIVELY: "pull", ConsumeType.PASSIVELY: "push", ConsumeType.POP: "pop"}


def broker_sampler(state: BrokerState) -> Sampler:
    """What makes the samples of this broker."""
    settings = state.settings
    return Sampler(
        Process.BROKER, settings.broker_cluster_name, settings.broker_name, str(settings.broker_id)
    )


def broker_metrics(state: BrokerState) -> Iterator[Metric]:
    """All metrics of a broker."""
    sampler = broker_sampler(state)
    status = ha_status(state)
    yield from ha_metrics(sampler, status)
    if status.is_master:
        # A slave counts what it copies too, and the sum over a group would be twice what was sent.
        yield from _counted_in(sampler, state)
        yield from _held_back(sampler, state)
    yield from _counted_out(sampler, state)
    yield from _connections(sampler, state)
    yield from _lags(sampler, state)
    yield from _storage(sampler, state)
    yield from slave_consume_metrics(sampler, state)
    yield from correction_metrics(sampler, state)
    yield from write_metrics(sampler, state)
    yield from _resets(sampler, state)
    yield from sampler.end()


def _counted_in(sampler: Sampler, state: BrokerState) -> Iterator[Metric]:
    for name, stat in (
        (names.MESSAGES_IN, Stat.TOPIC_PUT_NUMS),
        (names.THROUGHPUT_IN, Stat.TOPIC_PUT_SIZE),
    ):
        values = state.counters.values(stat)
        yield sampler.many(
            name,
            {(topic, _flag(is_it=state.topics.is_system(topic))): count for topic, count in values.items()},
        )
    given_up = {
        (group := topic.removeprefix(DLQ_PREFIX), _flag(is_it=group in SYSTEM_GROUPS)): count
        for topic, count in state.counters.values(Stat.TOPIC_PUT_NUMS).items()
        if topic.startswith(DLQ_PREFIX)
    }
    yield sampler.many(names.SENT_TO_DLQ, given_up)


def _held_back(sampler: Sampler, state: BrokerState) -> Iterator[Metric]:
    """What is not to be read yet: transactions, and messages with a time of their own."""
    for name, stat in (
        (names.COMMIT_MESSAGES, Stat.COMMIT_NUMS),
        (names.ROLLBACK_MESSAGES, Stat.ROLLBACK_NUMS),
        (names.TIMER_ENQUEUE, Stat.TIMER_ENQUEUE_NUMS),
        (names.TIMER_DEQUEUE, Stat.TIMER_DEQUEUE_NUMS),
    ):
        yield sampler.many(name, {(topic,): count for topic, count in state.counters.values(stat).items()})
    if state.half_count is not None:
        yield sampler.one(names.HALF_MESSAGES, state.half_count())
    yield sampler.one(names.TIMING_MESSAGES, len(state.delays.timers))


def _counted_out(sampler: Sampler, state: BrokerState) -> Iterator[Metric]:
    for name, stat in (
        (names.MESSAGES_OUT, Stat.GROUP_GET_NUMS),
        (names.THROUGHPUT_OUT, Stat.GROUP_GET_SIZE),
    ):
        told: dict[tuple[str, ...], float] = {}
        for key, count in state.counters.values(stat).items():
            topic, _, group = key.partition("@")
            told[group, topic, _flag(is_it=_is_system(state, group, topic))] = count
        yield sampler.many(name, told)


def _connections(sampler: Sampler, state: BrokerState) -> Iterator[Metric]:
    producers = Counter(
        (client.language.lower(), _version(client.version)) for client in state.clients.producers()
    )
    yield sampler.many(names.PRODUCER_CONNECTIONS, producers)
    consumers = Counter(
        (
            *(group, client.language.lower(), _version(client.version), _CONSUME_MODES[kind]),
            _flag(is_it=group in SYSTEM_GROUPS),
        )
        for group, kind, client in state.clients.consumers()
    )
    yield sampler.many(names.CONSUMER_CONNECTIONS, consumers)
    yield sampler.one(names.TOPIC_NUMBER, len(state.topics.table.topics))
    yield sampler.one(names.CONSUMER_GROUP_NUMBER, len(state.groups.table.groups))
    yield sampler.one(names.BROKER_PERMISSION, state.settings.broker_permission)
    yield sampler.one(names.SENDS_WAITING, len(state.writer.pending))


@dataclass(slots=True)
class _Lags:
    """How far groups are, by the labels of a sample."""

    behind: dict[tuple[str, ...], float] = field(default_factory=dict[tuple[str, ...], float])
    fetched: dict[tuple[str, ...], float] = field(default_factory=dict[tuple[str, ...], float])
    ready: dict[tuple[str, ...], float] = field(default_factory=dict[tuple[str, ...], float])


def _lags(sampler: Sampler, state: BrokerState) -> Iterator[Metric]:
    lags, pairs = _Lags(), state.offsets.pairs()
    for topic, group in islice(pairs, _MOST_PAIRS):
        wanted = state.clients.subscriptions(group)
        # Offsets that a group with members left in other topics before are no backlog of it.
        if not wanted or topic in wanted:
            _add_lag(lags, state, group, topic)
    sampler.leave_out(names.CONSUMER_LAG_MESSAGES, sum(1 for _ in pairs))
    yield sampler.many(names.CONSUMER_LAG_MESSAGES, lags.behind)
    yield sampler.many(names.CONSUMER_INFLIGHT, lags.fetched)
    yield sampler.many(names.CONSUMER_READY, lags.ready)
    furthest = nlargest(_MOST_AGES, lags.behind.items(), key=lambda item: item[1])
    ages, read_count = dict[tuple[str, ...], float](), 0
    for labels, behind in furthest:
        waiting = _waiting(state, labels[0], labels[1], _MOST_AGES - read_count) if behind else []
        if behind and not waiting:
            sampler.leave_out(names.CONSUMER_LAG_LATENCY, 1)
            continue
        read_count += len(waiting)
        ages[labels] = _age_ms(state, labels[1], waiting)
    yield sampler.many(names.CONSUMER_LAG_LATENCY, ages)


def _add_lag(lags: _Lags, state: BrokerState, group: str, topic: str) -> None:
    labels = (
        *(group, topic, _flag(is_it=topic.startswith(RETRY_PREFIX))),
        _flag(is_it=_is_system(state, group, topic)),
    )
    behind = fetched = 0
    for queue_id, offset in state.offsets.queues(group, topic).items():
        low, high = queue_bounds(state.store, topic, queue_id)
        stands = max(offset, low)
        pulled = state.pull_progress.find(group, topic, queue_id) or 0
        behind += max(0, high - stands)
        fetched += max(0, min(pulled, high) - stands)
    lags.behind[labels], lags.fetched[labels], lags.ready[labels] = behind, fetched, behind - fetched


def _waiting(state: BrokerState, group: str, topic: str, most: int) -> list[tuple[int, int]]:
    """Queues in which messages wait for a group and where it stands in them, those furthest behind."""
    found: list[tuple[int, int, int]] = []
    for queue_id, offset in state.offsets.queues(group, topic).items():
        low, high = queue_bounds(state.store, topic, queue_id)
        stands = max(offset, low)
        if stands < high:
            found.append((high - stands, queue_id, stands))
    return [(queue_id, stands) for _, queue_id, stands in nlargest(most, found)]


def _age_ms(state: BrokerState, topic: str, waiting: Sequence[tuple[int, int]]) -> int:
    """How old the oldest message of these queues is that the group has not acknowledged."""
    now_ms, oldest = state.clock.now_ms(), 0
    for queue_id, stands in waiting:
        stored_ms = store_time_ms(state.store, topic, queue_id, stands)
        if stored_ms is not None:
            oldest = max(oldest, now_ms - stored_ms)
    return oldest


def _storage(sampler: Sampler, state: BrokerState) -> Iterator[Metric]:
    store, now_ms = state.store, state.clock.now_ms()
    log, earliest_ms = store.log, store.earliest_timestamp_ms()
    timer_end = queue_bounds(store, TIMER_TOPIC, TIMER_QUEUE_ID)[1]
    figures: dict[MetricName, float] = {
        names.STORAGE_SIZE: log.log_end - log.log_start,
        names.FLUSH_BEHIND: log.log_end - log.flushed_to,
        names.DISPATCH_BEHIND: log.log_end - store.dispatcher.dispatched_to,
        names.MESSAGE_RESERVE_TIME: 0 if earliest_ms is None else max(0, now_ms - earliest_ms),
        names.TIMER_ENQUEUE_LAG: max(0, timer_end - state.delays.timers.read_to),
    }
    for name, figure in figures.items():
        yield sampler.one(name, figure, *_STORAGE)
    yield sampler.one(names.LOG_END, log.log_end)
    yield sampler.one(names.DISK_USED, store.used_ratio())
    yield sampler.one(names.DAMAGED_PLACES, len(state.scrub.damage))
    yield sampler.one(names.SCRUBBED, state.scrub.checked_bytes)
    yield sampler.one(names.UP_SINCE, state.counters.boot_ms / 1000)


def _resets(sampler: Sampler, state: BrokerState) -> Iterator[Metric]:
    orders = state.resets.orders()
    by_state = Counter(order.record.state for order in orders)
    yield sampler.many(names.RESET_ORDERS, {(each.value,): by_state[each] for each in ResetState})
    receipts = Counter(
        receipt.state for order in orders if order.watch is not None for receipt in order.watch.receipts
    )
    yield sampler.many(names.RESET_RECEIPTS, {(each.value,): receipts[each] for each in ReceiptState})


def _is_system(state: BrokerState, group: str, topic: str) -> bool:
    return group in SYSTEM_GROUPS or state.topics.is_system(topic)


def _flag(*, is_it: bool) -> str:
    return "true" if is_it else "false"


def _version(number: int) -> str:
    return _VERSIONS.get(number) or str(number)
