"""How a broker runs, in the words of RocketMQ's ``brokerStatus`` and ``clusterList``.

What RocketMQ measures and we do not is left out, but for what ``clusterList`` fails without: a broker
that handles every request in the turn in which it came has no queues of requests, so nothing waits there.
"""

import shutil
from collections.abc import Callable

from tanist.broker.delays.rules import TIMER_QUEUE_ID
from tanist.broker.operating.stats import Daily, Rates
from tanist.broker.pending import MAX_WAITING_SENDS
from tanist.broker.queue_look import queue_bounds
from tanist.broker.state import BrokerState
from tanist.model.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from tanist.protocol.codes import OUR_VERSION, Version

_SPANS_S = (10, 60, 600)
_NO_TIME = -1
_UNITS = "KMGTPE"
_POOLS = ("send", "pull", "litePull", "query", "ack")


def runtime_info(state: BrokerState) -> dict[str, str]:
    """Every figure by its name."""
    info = _counts(state) | _store(state) | _requests(state) | _delays(state)
    info |= {
        # As in RocketMQ: whether it delivers what waited and asks about transactions.
        "brokerActive": "false" if state.settings.is_slave else "true",
        "brokerVersion": str(OUR_VERSION),
        "brokerVersionDesc": Version(OUR_VERSION).name,
        "bootTimestamp": str(state.counters.boot_ms),
        "runtime": _span(state.clock.now_ms() - state.counters.boot_ms),
    }
    return info


def _counts(state: BrokerState) -> dict[str, str]:
    counters = state.counters
    rates = [counters.rates(span_s) for span_s in _SPANS_S]

    def told(figure: Callable[[Rates], float]) -> str:
        return " ".join(str(figure(rate)) for rate in rates)

    return {
        "putTps": told(lambda rate: rate.put_count),
        "getFoundTps": told(lambda rate: rate.found_count),
        "getMissTps": told(lambda rate: rate.missed_count),
        "getTotalTps": told(lambda rate: rate.found_count + rate.missed_count),
        "getTransferredTps": told(lambda rate: rate.transferred_count),
        "putMessageTimesTotal": str(counters.put_count),
        "putMessageSizeTotal": str(counters.put_bytes),
        "putMessageAverageSize": str(counters.put_bytes / max(1, counters.put_count)),
        **_daily("msgPutTotal", counters.daily_puts),
        **_daily("msgGetTotal", counters.daily_gets),
    }


def _daily(name: str, count: Daily) -> dict[str, str]:
    return {
        f"{name}YesterdayMorning": str(count.yesterday),
        f"{name}TodayMorning": str(count.today),
        f"{name}TodayNow": str(count.now),
    }


def _store(state: BrokerState) -> dict[str, str]:
    store = state.store
    log = store.log
    used, space = str(store.used_ratio()), shutil.disk_usage(store.root)
    earliest_ms = store.earliest_timestamp_ms()
    return {
        "commitLogDiskRatio": used,
        f"commitLogDiskRatio_{log.segments.directory}": used,
        "consumeQueueDiskRatio": used,
        "commitLogMinOffset": str(log.log_start),
        "commitLogMaxOffset": str(log.log_end),
        "commitLogDirCapacity": f"Total : {_size(space.total)}, Free : {_size(space.free)}.",
        "dispatchBehindBytes": str(log.log_end - store.dispatcher.dispatched_to),
        "remainHowManyDataToFlush": _size(log.log_end - log.flushed_to),
        "earliestMessageTimeStamp": str(_NO_TIME if earliest_ms is None else earliest_ms),
        # One writer: nobody waits for a lock.
        "pageCacheLockTimeMills": "0",
        "startAcceptSendRequestTimeStamp": "0",
    }


def _requests(state: BrokerState) -> dict[str, str]:
    waiting = {f"{pool}ThreadPoolQueueSize": "0" for pool in _POOLS}
    waiting |= {f"{pool}ThreadPoolQueueHeadWaitTimeMills": "0" for pool in _POOLS}
    return waiting | {
        # The sends that wait for the disk.
        "sendThreadPoolQueueSize": str(len(state.writer.pending)),
        "sendThreadPoolQueueCapacity": str(MAX_WAITING_SENDS),
    }


def _delays(state: BrokerState) -> dict[str, str]:
    """How far delivery is at each level, and how many messages the timer has still to take in."""
    behind = queue_bounds(state.store, TIMER_TOPIC, TIMER_QUEUE_ID)[1] - state.delays.timers.read_to
    delivered = {
        f"scheduleMessageOffset_{level}": f"{offset},{_end_of_level(state, level)}"
        for level, offset in state.delays.levels.table().offset_table.items()
    }
    return delivered | {
        "timerReadBehind": "0",
        "timerOffsetBehind": str(max(behind, 0)),
        "timerCongestNum": "0",
        "timerEnqueueTps": "0.0",
        "timerDequeueTps": "0.0",
    }


def _end_of_level(state: BrokerState, level: int) -> int:
    return queue_bounds(state.store, SCHEDULE_TOPIC, level - 1)[1]


def _span(span_ms: int) -> str:
    minutes, seconds = divmod(span_ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


def _size(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes} B"
    power = min((size_bytes.bit_length() - 1) // 10, len(_UNITS))
    return f"{size_bytes / 1024**power:.1f} {_UNITS[power - 1]}iB"
