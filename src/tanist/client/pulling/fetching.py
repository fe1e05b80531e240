"""One fetch of messages: a pull, at the replica that may be read, and what its answer means."""

from collections.abc import Mapping

import msgspec

from tanist.client.errors import NoRoute, ReplicaBehind
from tanist.client.pulling.fetched import Fetched, is_answer, read_answer
from tanist.client.pulling.pulse import Pulse
from tanist.client.pulling.replica_choice import ReplicaChoice
from tanist.client.session.session import Session
from tanist.errors import MQError, RemotingError, TooBusy
from tanist.model.offsets import QueueOffset
from tanist.model.route import MASTER_ID, MessageQueue
from tanist.model.subscription import SubscriptionData
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.pull import PullMessageRequest, PullSysFlag
from tanist.protocol.response_errors import NotReadable, error_of

DEFAULT_COUNT = 32
SUSPEND_S = 15.0
"""How long a broker keeps a pull that finds nothing."""

_LATE_S = 15.0
"""How much later than that an answer may come: brokers of RocketMQ look after parked pulls every 5 s."""

_MOST_AT_SLAVE_MS = 5000
"""How long a slave keeps a pull, so that its master is read soon after it is back."""

_LOOK_AGAIN_S = 10.0
"""A queue whose reader is sought is tried again after this time: somebody may have been mistaken."""

_COMMIT = int(PullSysFlag.COMMIT_OFFSET)
_SUSPEND = int(PullSysFlag.SUSPEND)
_SUBSCRIPTION = int(PullSysFlag.SUBSCRIPTION)
_SUGGESTED = "suggestWhichBrokerId"

_NOT_HERE = frozenset(
    {
        ResponseCode.NO_PERMISSION,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.GO_AWAY,
    }
)
"""Refusals of a master that its slaves may not share. Any refusal of a slave leads back to the master."""


class Fetcher:
    """Fetches for one member of ``group``, and remembers for each queue which replica it is read from.

    A queue must have one fetch under way at most: otherwise two replicas might be read at a time.
    """

    def __init__(self, session: Session, group: str) -> None:
        self._session = session
        self._group = group
        self._choices: dict[MessageQueue, ReplicaChoice] = {}
        self._pulse = Pulse(session.wire, session.tasks, answer_s=session.settings.timeout_s)
        session.readers.on_reader(self._on_reader)

    async def fetch(
        self,
        queue: MessageQueue,
        offset: QueueOffset,
        *,
        subscription: SubscriptionData,
        max_count: int = DEFAULT_COUNT,
        suspend_s: float = SUSPEND_S,
        consumer_offset: QueueOffset | None = None,
        is_by_hand: bool = False,
    ) -> Fetched:
        """What the queue has from ``offset`` on; waits for a message to come, ``suspend_s`` at most.

        ``consumer_offset`` is committed on the way, if a master is read. By hand, the pull brings its
        subscription along, and no heartbeat has to have told it before.

        A replica that can not be reached, or refuses, is passed over for another at once, each is asked
        once. Raises the error of the last one then; NoRoute if the route has none; RemoteProtocolError if
        an answer makes no sense.
        """
        request = PullMessageRequest(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_message_count=max_count,
            sys_flag=_sys_flag(
                commits=consumer_offset is not None, waits=suspend_s > 0, is_by_hand=is_by_hand
            ),
            consumer_offset=QueueOffset(0) if consumer_offset is None else consumer_offset,
            suspend_timeout_ms=int(suspend_s * 1000),
            subscription=subscription.expression if is_by_hand else None,
            sub_version=0 if is_by_hand else subscription.sub_version,
            expression_type=subscription.expression_type,
        )
        routes = self._session.routes.table
        choice = self._choices.setdefault(queue, ReplicaChoice())
        tried: set[str] = set()
        failure: MQError = NoRoute(queue.topic, f"its route names no replica of broker {queue.broker_name}")
        while True:
            replicas = await self._replicas(queue)
            choice.on_route(replicas)
            broker_id = choice.choose(self._now_s())
            if broker_id is None or replicas[broker_id] in tried:
                raise failure
            tried.add(replicas[broker_id])
            answer = await self._pull(choice, queue, broker_id, replicas[broker_id], request)
            if isinstance(answer, Command):
                fetched = read_answer(answer, queue, offset, subscription=subscription, broker_id=broker_id)
                if broker_id == MASTER_ID or not fetched.goes_back_from(offset):
                    choice.on_answer(broker_id, fetched.suggested_id)
                    return fetched
                choice.on_refused(broker_id, fetched.suggested_id, self._now_s())
                answer = ReplicaBehind(replicas[broker_id], offset=offset, max_offset=fetched.max_offset)
            failure = answer
            if isinstance(failure, NotReadable):
                await self._session.readers.follow(queue.broker_name, replicas[broker_id], failure)
                if routes.master_of(queue.broker_name) == failure.reader_address:
                    choice.on_reader()

    def forget(self, queue: MessageQueue) -> None:
        """The queue is not read any more."""
        self._choices.pop(queue, None)

    async def wait_for_route(self, timeout_s: float) -> None:
        """Wait until a route is another one, for what failed may work then; so long at most."""
        await self._session.routes.changed(timeout_s)

    async def introduce(self, queue: MessageQueue) -> bool:
        """Tell the queue's broker of our subscription; False if it was told before, or can not be."""
        address = self._session.routes.table.some_replica_of(queue.broker_name)
        return address is not None and await self._session.heartbeats.greet(address)

    async def wait_for_reader(self, queue: MessageQueue) -> bool:
        """Wait until it is known who may be read; False if nobody is there to tell."""
        if not self._session.readers.is_sought(queue.broker_name):
            return False
        await self._session.routes.changed(_LOOK_AGAIN_S)
        return True

    async def _pull(
        self,
        choice: ReplicaChoice,
        queue: MessageQueue,
        broker_id: int,
        address: str,
        request: PullMessageRequest,
    ) -> Command | MQError:
        """The answer of one replica; an error if another replica may do better."""
        if broker_id != MASTER_ID:
            # A slave's offsets are its master's: what it is told itself would be lost, or override those.
            request = msgspec.structs.replace(
                request,
                sys_flag=request.sys_flag & ~_COMMIT,
                suspend_timeout_ms=min(request.suspend_timeout_ms, _MOST_AT_SLAVE_MS),
            )
        timeout_s = self._session.settings.timeout_s
        if request.sys_flag & _SUSPEND:
            timeout_s = request.suspend_timeout_ms / 1000 + _LATE_S
        command = Command.request(RequestCode.PULL_MESSAGE, request)
        self._pulse.begin(address, queue)
        try:
            answer = await self._session.wire.exchange(address, command, timeout_s=timeout_s)
        except TooBusy:
            raise
        except RemotingError as error:
            choice.on_lost(broker_id, self._now_s())
            if broker_id == MASTER_ID:
                self._session.routes.seek_master(queue.broker_name)
                self._session.readers.seek(queue.broker_name)
            else:
                self._session.routes.suspect()
            return error
        finally:
            self._pulse.end(address)
        return answer if is_answer(answer) else self._refused(choice, broker_id, answer)

    def _refused(self, choice: ReplicaChoice, broker_id: int, answer: Command) -> MQError:
        """Take a refusal in that another replica may not share; raises one that it would."""
        failure = error_of(answer)
        if failure.refresh_route:
            self._session.routes.suspect()
        suggested = _suggested(answer)
        if suggested is None and broker_id == MASTER_ID and failure.code not in _NOT_HERE:
            raise failure
        choice.on_refused(broker_id, suggested, self._now_s())
        return failure

    def _on_reader(self, broker_name: str) -> None:
        for queue, choice in self._choices.items():
            if queue.broker_name == broker_name:
                choice.on_reader()

    async def _replicas(self, queue: MessageQueue) -> Mapping[int, str]:
        routes = self._session.routes
        replicas = routes.table.replicas.get(queue.broker_name)
        if not replicas:
            await routes.find(queue.topic)
            replicas = routes.table.replicas.get(queue.broker_name)
        if not replicas:
            routes.suspect()
        return replicas or {}

    def _now_s(self) -> float:
        return self._session.clock.monotonic_s()


def _sys_flag(*, commits: bool, waits: bool, is_by_hand: bool) -> int:
    return (_COMMIT if commits else 0) | (_SUSPEND if waits else 0) | (_SUBSCRIPTION if is_by_hand else 0)


def _suggested(answer: Command) -> int | None:
    """The replica that a refusal names, if it names one."""
    text = answer.ext.get(_SUGGESTED, "")
    return int(text) if text.isdecimal() else None
