"""A slave's way to its master: the link for the log and the tables, and whom to ask while it is down."""

from tanist.broker.metadata_sync import MetadataSync
from tanist.broker.registration import MasterPlace
from tanist.broker.state import BrokerState
from tanist.broker.tables_sink import TablesSink
from tanist.remoting import RemotingClient


class Following:
    """What one slave follows its master with. The broker runs ``follower`` and ``sync``."""

    def __init__(self, state: BrokerState, client: RemotingClient) -> None:
        self._sink = TablesSink(state)
        self.follower = state.replication.make_follower(self._sink)
        self.sync = MetadataSync(state, client, is_pushed=self._is_pushed)
        state.writer.on_appended.append(self._sink.on_appended)

    def use_master(self, place: MasterPlace) -> None:
        """The master is here now."""
        self.follower.use_master(place.ha_address)
        self.sync.use_master(place.address)

    def _is_pushed(self) -> bool:
        """Whether the link brings the tables, so that nobody is asked for them."""
        return self.follower.is_transferring and self._sink.is_fed
