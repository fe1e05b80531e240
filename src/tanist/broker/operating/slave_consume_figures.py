"""Slave consumption as metrics, and the alarm for an operator who is needed."""

import asyncio
import logging
from collections.abc import Iterator

from prometheus_client import Metric

from tanist import metrics
from tanist.broker.slave_consume.status import alarm
from tanist.broker.state import BrokerState
from tanist.model.reading import NONE, GroupRole, permission_of
from tanist.protocol.bodies.slave_consume import LedgerEvent

_log = logging.getLogger(__name__)

_EVERY_S = 60.0


def slave_consume_metrics(state: BrokerState) -> Iterator[Metric]:
    """None of a broker without a coordinator."""
    if state.slave_consume is None:
        return
    status, settings = state.slave_consume.status(), state.settings
    node = (settings.broker_cluster_name, "broker", settings.broker_name, str(settings.broker_id))
    figures = {
        metrics.SLAVE_CONSUME_PERMISSION: permission_of(status.permission) or NONE,
        metrics.SLAVE_CONSUME_TERM: status.term,
        metrics.SLAVE_CONSUME_ACTIVE: int(status.reader is not None),
    }
    if status.role is GroupRole.MASTER:
        figures[metrics.SLAVE_CONSUME_GIVEN_UP] = int(status.given_up is not None)
    for name, figure in figures.items():
        family = name.family()
        family.add_metric(node, figure)
        yield family
    counts = {
        metrics.SLAVE_CONSUME_EVENTS: {
            event.value: state.slave_consume.event_counts.get(event, 0) for event in LedgerEvent
        },
        metrics.SLAVE_CONSUME_DELIVERED_TWICE: status.delivered_twice,
    }
    for name, by_label in counts.items():
        family = name.family()
        for label, count in by_label.items():
            family.add_metric((*node, label), count)
        yield family


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
