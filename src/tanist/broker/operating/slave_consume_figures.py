"""Slave consumption as metrics, and the alarm for an operator who is needed."""

import asyncio
import logging
from collections.abc import Iterator

from prometheus_client import Metric

from tanist.broker.slave_consume.status import alarm
from tanist.broker.state import BrokerState
from tanist.metrics import Sampler, names
from tanist.model.reading import NONE, GroupRole, permission_of
from tanist.protocol.bodies.slave_consume import LedgerEvent

_log = logging.getLogger(__name__)

_EVERY_S = 60.0


def slave_consume_metrics(sampler: Sampler, state: BrokerState) -> Iterator[Metric]:
    """None of a broker without a coordinator."""
    if state.slave_consume is None:
        return
    status = state.slave_consume.status()
    yield sampler.one(names.SLAVE_CONSUME_PERMISSION, permission_of(status.permission) or NONE)
    yield sampler.one(names.SLAVE_CONSUME_TERM, status.term)
    yield sampler.one(names.SLAVE_CONSUME_ACTIVE, int(status.reader is not None))
    if status.role is GroupRole.MASTER:
        yield sampler.one(names.SLAVE_CONSUME_GIVEN_UP, int(status.given_up is not None))
    counts = state.slave_consume.event_counts
    yield sampler.many(
        names.SLAVE_CONSUME_EVENTS, {(event.value,): counts.get(event, 0) for event in LedgerEvent}
    )
    twice = status.delivered_twice
    yield sampler.many(
        names.SLAVE_CONSUME_DELIVERED_TWICE, {(group,): count for group, count in twice.items()}
    )


class Alarm:
    """Tells, each minute, that only an operator can help."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    async def run(self) -> None:
        """Tell every minute, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            self.tell()

    def tell(self) -> None:
        if self._state.slave_consume is None:
            return
        status = self._state.slave_consume.status()
        if (reason := alarm(status)) is not None:
            _log.error("group is not readable group=%s reason=%s", status.group, reason)
