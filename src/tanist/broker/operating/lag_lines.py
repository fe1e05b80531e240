"""A line of the log each minute about how far the slaves of a master are behind, with its terms."""

import asyncio
import logging

from tanist.broker.state import BrokerState

_log = logging.getLogger(__name__)

_EVERY_S = 60.0


class LagLines:
    """Tells of the slaves of one master."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._is_told_unknown = False

    async def run(self) -> None:
        """Tell every minute, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            self.tell()

    def tell(self) -> None:
        """One line a slave. That there is none is told once, for a broker may never have one."""
        replicas, log_end = self._state.replication.replicas, self._state.store.log.log_end
        if not len(replicas) and not self._is_told_unknown:
            _log.info("slave fall behind master: unknown, for no slave is connected log_end=%d", log_end)
        self._is_told_unknown = not len(replicas)
        for replica in replicas:
            _log.info(
                "slave fall behind master: %d - %d = %d bytes slave=%s id=%s",
                *(log_end, replica.acked_to, replica.lag_bytes(log_end)),
                *(replica.peer, replica.broker_id),
            )
