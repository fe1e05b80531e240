"""A broker in this process, of a fixed role, whose read right a test gives instead of a coordinator."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tanist.broker.broker import Broker
from tanist.broker.duties import Duties
from tanist.broker.registration import Registration
from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.slave_consume.right import ReadRight
from tanist.broker.state import BrokerState
from tanist.ha.settings import HaSettings
from tanist.model.reading import NONE
from tanist.model.topics import TopicConfig
from tanist.store import StoreSettings
from tanist.store.flush import Flusher

_SMALL = StoreSettings(
    mapped_file_size_commit_log=1 << 20,
    mapped_file_size_consume_queue=20 * 1000,
    max_hash_slot_num=1000,
    max_index_num=4000,
)


class RightBroker(Broker):
    """It is permitted nothing until the test says so."""

    state: BrokerState
    right: ReadRight

    def permit(self, permission: int, *, reader: str | None = None, term: int = 1) -> None:
        """From now on. Without a reader it is this broker, or nobody if it may do nothing."""
        own = self.address if permission else None
        self._found = Permitted(permission, "a test says so", reader or own, term)
        self.right.on_changed()

    @asynccontextmanager
    async def _on_duty(
        self, duties: Duties, registration: Registration, ha_bound: socket.socket | None, flusher: Flusher
    ) -> AsyncGenerator[None]:
        self.state = duties.state
        self._found = Permitted(NONE, "nothing is known yet")
        self.right = ReadRight(self.address, lambda: self._found)
        duties.ports.obey(self.right)
        self.right.listeners.append(registration.on_permitted)
        self.right.on_changed()
        async with super()._on_duty(duties, registration, ha_bound, flusher):
            yield


@asynccontextmanager
async def right_broker(
    folder: Path,
    names: str,
    broker_id: int,
    *,
    broker_name: str = "broker-a",
    topics: tuple[TopicConfig, ...] = (),
) -> AsyncGenerator[RightBroker]:
    """The broker of this id, a master if that is 0, while the block lasts."""
    settings = BrokerSettings(
        broker_cluster_name="pairs",
        broker_name=broker_name,
        broker_id=broker_id,
        broker_role=BrokerRole.SLAVE if broker_id else BrokerRole.ASYNC_MASTER,
        namesrv_addr=names,
        listen_port=0,
        store_path_root_dir=str(folder / f"replica-{broker_id}"),
    )
    ha = HaSettings(ha_secret="a secret of both, long and random")
    broker = RightBroker(settings, _SMALL, ha=ha, topics=topics)
    async with asyncio.timeout(120), broker.serving():
        yield broker
