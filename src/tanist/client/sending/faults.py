"""Which brokers a producer keeps away from for a while: those that failed and those that are slow. Pure.

The times are those of RocketMQ's MQFaultStrategy: the slower an answer was, the longer the rest. A broker
that is avoided is only a worse choice than others: while no better one is left it is used all the same.
"""

from collections.abc import Collection
from enum import IntEnum

# An answer that took so long has its broker avoided for so long, the slowest first.
_RESTS_S = ((15.0, 30.0), (5.0, 10.0), (3.0, 6.0), (1.8, 5.0), (0.55, 2.0))
SLOW_FROM_S = _RESTS_S[-1][0]
FAILED_REST_S = 10.0


class Standing(IntEnum):
    """How good a choice a broker is; the least is the best."""

    GOOD = 0
    SLOW = 1
    FAILED = 2


class BrokerFaults:
    """What one producer has seen of its brokers lately."""

    def __init__(self) -> None:
        # how bad, and until when
        self._faults: dict[str, tuple[Standing, float]] = {}

    @property
    def are_none(self) -> bool:
        """Whether no broker is avoided, so that choosing needs no look at them."""
        return not self._faults

    def on_answer(self, broker_name: str, *, latency_s: float, now_s: float) -> None:
        """A broker took a message. One that was quick is trusted again at once."""
        if latency_s < SLOW_FROM_S:
            if self._faults:
                self._faults.pop(broker_name, None)
            return
        rest_s = next(rest_s for from_s, rest_s in _RESTS_S if latency_s >= from_s)
        self._faults[broker_name] = (Standing.SLOW, now_s + rest_s)

    def on_failure(self, broker_name: str, *, now_s: float) -> None:
        """A broker could not be reached, did not answer, or said that it can not work now."""
        self._faults[broker_name] = (Standing.FAILED, now_s + FAILED_REST_S)

    def forget(self, broker_name: str) -> None:
        """What was seen of a broker does not count any more: it has another master."""
        self._faults.pop(broker_name, None)

    def standing(self, broker_name: str, *, now_s: float) -> Standing:
        """How good a choice the broker is now."""
        fault = self._faults.get(broker_name)
        if fault is None:
            return Standing.GOOD
        standing, until_s = fault
        if now_s >= until_s:
            del self._faults[broker_name]
            return Standing.GOOD
        return standing

    def best(self, broker_names: Collection[str], *, now_s: float) -> set[str]:
        """Those of the brokers that none of the others is better than. Never empty unless they are none."""
        standings = {name: self.standing(name, now_s=now_s) for name in broker_names}
        least = min(standings.values(), default=Standing.GOOD)
        return {name for name, standing in standings.items() if standing is least}
