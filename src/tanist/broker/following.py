"""A slave's way to its master: the link for the log and the tables, and whom to ask while it is down."""

from collections.abc import Callable

from tanist.broker.metadata_sync import MetadataSync, ask_for_table
from tanist.broker.registration import MasterPlace
from tanist.broker.state import BrokerState
from tanist.broker.tables_gap import tables_gap
from tanist.broker.tables_sink import TablesSink
from tanist.errors import ForeignLog, MQError
from tanist.ha.notes import SlaveNotes
from tanist.ha.settings import HaCompatibility
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.codes import Language, RequestCode
from tanist.protocol.command import Command
from tanist.remoting import RemotingClient

_WHO_S = 1.0


class Following:
    """What one slave follows its master with. The broker runs ``follower`` and ``sync``."""

    def __init__(
        self,
        state: BrokerState,
        client: RemotingClient,
        *,
        notes: SlaveNotes | None = None,
        owns_offsets: Callable[[], bool] = lambda: False,
    ) -> None:
        """``notes`` hears what the master notes. While ``owns_offsets``, ours are not the master's to set."""
        self._state = state
        self._client = client
        self._sink = sink = TablesSink(state, owns_offsets)
        self.follower = state.replication.make_follower(
            sink,
            broker_id=state.settings.broker_id,
            epoch=state.epoch,
            ask_if_rocketmq=self._is_rocketmq,
            notes=notes,
        )
        self.sync = MetadataSync(
            state,
            client,
            is_pushed=self._is_pushed,
            check_master=self._check_master,
            owns_offsets=owns_offsets,
        )
        self.on_appended = sink.on_appended
        """To be called when the log has grown, and when ``owns_offsets`` has become False."""
        self.settle_offsets = sink.settle_offsets
        """To be called when ``owns_offsets`` is about to become True."""
        self._missed_topics: set[str] = set()

    def use_master(self, place: MasterPlace) -> None:
        """The master is here now."""
        self._state.replication.master_address = place.address
        self.follower.use_master(place.ha_address)
        self.sync.use_master(place.address)

    def on_indexed(self, topic: str, _queue_id: int, _next_offset: int) -> None:
        """The log has messages of this topic. A master of RocketMQ does not tell us that it made it."""
        is_missing = topic not in self._missed_topics and self._state.topics.find(topic) is None
        if is_missing and not self._is_pushed():
            self._missed_topics.add(topic)
            self.sync.hasten()

    def tables_gap(self) -> str | None:
        """What this slave would lack as master; None if nothing."""
        return tables_gap(self._sink.told_kinds, self.sync.missing)

    def _is_pushed(self) -> bool:
        """Whether the link brings the tables, so that nobody is asked for them."""
        status = self.follower.status
        return self.follower.is_transferring and status.dialect is not None and status.dialect.has_tables

    async def _is_rocketmq(self) -> bool:
        """Whether the master says that it is written in Java, whatever else it says."""
        address = self._state.replication.master_address
        if address is None:
            return False
        request = Command.request(RequestCode.GET_BROKER_HA_STATUS)
        try:
            answer = await self._client.request(address, request, timeout_s=_WHO_S)
        except MQError:
            return False
        return answer.language is Language.JAVA

    async def _check_master(self, master: str) -> None:
        """Raise ForeignLog if the master's tables are not for our log.

        Else they would take the place of the topics and offsets that belong to it. One that may be of
        RocketMQ is not asked, for it does not know, and an empty log has nothing to lose.
        """
        state = self._state
        if not state.store.log.log_end:
            return
        if self.follower.status.is_refused:
            raise ForeignLog("it does not take our log; see haStatus")
        if state.ha.ha_compatibility is not HaCompatibility.NONE:
            return
        body = await ask_for_table(self._client, master, RequestCode.GET_BROKER_HA_STATUS)
        told = decode_java_json(body, HARuntimeInfo)
        ours = (state.settings.broker_name, state.store.incarnation.hex())
        if (told.broker_name, told.incarnation) != ours:
            raise ForeignLog(
                f"its log is {told.incarnation} of {told.broker_name}, ours {ours[1]} of {ours[0]}"
            )
