"""Asks brokers about writes: which queues there are, what they have of a query, and tells them its plan."""

from collections.abc import Mapping

from tanist.client.errors import NoRoute
from tanist.client.session.nameservers import NameServers
from tanist.client.session.wire import Wire
from tanist.errors import RemotingError
from tanist.model.route import MASTER_ID
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.writes import WritePlan, WriteProgress
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.writes import EndWriteRequest, GetWriteProgressRequest, PutWritePlanRequest
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import TopicNotFound
from tanist.spark.errors import SparkError
from tanist.spark.sink.options import SinkOptions

_OR_UNKNOWN = (int(ResponseCode.SUCCESS), int(ResponseCode.REQUEST_CODE_NOT_SUPPORTED))


class NoMaster(SparkError):
    """A broker has no master now, and one may be elected soon."""


class Brokers:
    """The brokers of one topic, found again whenever one of them fails."""

    def __init__(self, options: SinkOptions, wire: Wire, *, is_there: bool = False) -> None:
        """``is_there`` says that the topic was found before: if it is not now, it may be back soon."""
        self._is_there = is_there
        self._topic = options.topic
        self._wire = wire
        self._names = NameServers(options.client_settings, wire.remoting)
        self.addresses: dict[str, str] = {}
        """The masters, by the name of their broker."""

    async def find(self) -> Mapping[str, int]:
        """How many queues each broker takes messages for now."""
        try:
            route = await self._names.route_of(self._topic)
        except (TopicNotFound, NoRoute) as error:
            if self._is_there:
                # Name servers forget a topic with the last broker that has it, and all when they start
                # again; brokers tell them anew.
                raise NoMaster(
                    f"topic {self._topic} has no broker now, as name servers say: {error}"
                ) from error
            if isinstance(error, NoRoute):
                raise
            raise SparkError(
                f"topic {self._topic} does not exist; create it first, the name servers have no route to it"
            ) from error
        self._is_there = True
        masters = {broker.broker_name: broker.broker_addrs.get(MASTER_ID) for broker in route.broker_datas}
        self.addresses = {name: address for name, address in masters.items() if address is not None}
        return {
            offered.broker_name: offered.write_queue_count
            for offered in route.queue_datas
            if offered.is_writable and offered.write_queue_count > 0
        }

    def address_of(self, broker_name: str) -> str:
        address = self.addresses.get(broker_name)
        if address is None:
            raise NoMaster(
                f"broker {broker_name} has no master now, and what it has of this write can not be known "
                "without it; rows that are its are written by nobody else"
            )
        return address

    async def progress(self, broker_name: str, query: str, partition: int) -> WriteProgress | None:
        """What a broker has; None if it does not keep track of that, as RocketMQ does not."""
        header = GetWriteProgressRequest(query=query, topic=self._topic, partition=partition)
        answer = await self._ask(broker_name, RequestCode.GET_WRITE_PROGRESS, header)
        if answer.code != ResponseCode.SUCCESS:
            return None
        return decode_java_json(answer.body, WriteProgress)

    async def put_plan(self, broker_name: str, query: str, plan: WritePlan) -> WriteProgress:
        """Tell a broker of a plan; those that it has now."""
        header = PutWritePlanRequest(query=query, topic=self._topic)
        answer = await self._ask(broker_name, RequestCode.PUT_WRITE_PLAN, header, encode_body(plan))
        return decode_java_json(answer.body, WriteProgress)

    async def end(self, query: str) -> None:
        """Tell all that a query is done. Who is not reached keeps it a while longer."""
        for broker_name in self.addresses:
            try:
                await self._ask(
                    broker_name, RequestCode.END_WRITE, EndWriteRequest(query=query, topic=self._topic)
                )
            except RemotingError:
                continue

    async def _ask(self, broker_name: str, code: RequestCode, header: Header, body: bytes = b"") -> Command:
        command = Command.request(code, header, body=body)
        return await self._wire.ask(self.address_of(broker_name), command, accepted=_OR_UNKNOWN)
