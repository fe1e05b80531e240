"""A plan at brokers that know no orders: how they are told, the telling, and what can be seen of it after."""

import asyncio
from collections.abc import Callable

from tanist.admin.parallel import in_parallel
from tanist.admin.resets.journal import Journal
from tanist.admin.resets.judging import HOLDS, judge
from tanist.admin.resets.places import Place
from tanist.admin.resets.plan import END, Plan, PlannedQueue, message_queue
from tanist.admin.resets.progress import AtBroker
from tanist.admin.resets.reading import GroupReader
from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.stock import (
    StockWay,
    choose_way,
    commit_queue,
    is_server_side,
    reset_by_time,
    reset_queue,
)
from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.model.groups import MessageModel

_LOOK_S = 1.0
"""How often clients are asked for their offsets where nobody tells of them."""


class AtStock:
    """The part of such brokers in one apply. ``on_change`` is called when there is something new to show."""

    def __init__(
        self,
        wire: Wire,
        plan: Plan,
        reader: GroupReader,
        *,
        journal: Journal,
        on_change: Callable[[], None],
    ) -> None:
        self._wire = wire
        self._plan = plan
        self._reader = reader
        self._journal = journal
        self._on_change = on_change

    async def look(self, place: Place, part: AtBroker) -> None:
        """What is done already, and how the rest can be. Raises ResetRefused if it can not."""
        part.done |= self._journal.done_at(place.broker_name).done
        online = (await self._reader.connections())[place.broker_name]
        broadcasts = online is not None and online.message_model is MessageModel.BROADCASTING
        part.way = choose_way(
            self._plan,
            place.broker_name,
            is_broadcast=broadcasts or self._plan.is_broadcast,
            is_online=online is not None,
            is_server_side=online is not None and await is_server_side(self._wire, place.address),
        )
        if part.way is StockWay.TIME and not part.done:
            part.at_ms = await self._time_that_fits(place)

    async def tell(self, place: Place, part: AtBroker) -> None:
        """Do what is left to do, queue by queue or all at once."""
        left = [queue for queue in self._queues(place) if queue.queue_id not in part.done]
        if not left:
            return
        assert part.way is not None
        found = await self._reader.offsets([message_queue(self._plan, queue) for queue in left])
        before = {queue.queue_id: now for queue, now in found.items() if now is not None}
        if part.way is not StockWay.COMMIT:
            part.stood = await self._reader.positions(place.broker_name)
        # Before the first change: undo goes back to what is written here.
        self._journal.write(place.broker_name, way=part.way.value, before=before)
        if part.way is StockWay.TIME:
            assert part.at_ms is not None
            await reset_by_time(
                self._wire,
                place.address,
                topic=self._plan.topic,
                group=self._plan.group,
                timestamp_ms=part.at_ms,
                is_force=self._plan.is_forward_allowed,
            )
            self._did(place, part, left)
            return
        tell = commit_queue if part.way is StockWay.COMMIT else reset_queue

        failures: list[MQError | OSError] = []

        async def tell_one(queue: PlannedQueue) -> None:
            if failures:
                return
            try:
                await tell(self._wire, place.address, self._plan, queue)
                self._did(place, part, [queue])
            except (MQError, OSError) as error:
                failures.append(error)

        # After a failure no other queue is begun; those that are on their way may be changed, so they count.
        await in_parallel(left, tell_one)
        if failures:
            raise failures[0]

    async def watch(self, place: Place, part: AtBroker, *, deadline_s: float) -> None:
        """Nobody tells when a client has moved, so it is looked at until then."""
        loop = asyncio.get_running_loop()
        while True:
            await self._look_again(place, part)
            self._on_change()
            if part.seen >= part.done or loop.time() >= deadline_s:
                return
            await asyncio.sleep(_LOOK_S)

    async def _look_again(self, place: Place, part: AtBroker) -> None:
        queues = [queue for queue in self._queues(place) if queue.queue_id in part.done - part.seen]
        before = self._journal.done_at(place.broker_name).before
        is_offline = part.way is StockWay.COMMIT
        if is_offline:
            found = await self._reader.offsets([message_queue(self._plan, queue) for queue in queues])
        else:
            found = await self._reader.positions(place.broker_name)
        for queue in queues:
            name = message_queue(self._plan, queue)
            stood = part.stood.get(name, before.get(queue.queue_id))
            # A client that stood there already shows nothing by standing there.
            shows = is_offline or stood != queue.target
            if shows and judge(before=stood, target=queue.target, now=found.get(name)) in HOLDS:
                part.seen.add(queue.queue_id)

    def _did(self, place: Place, part: AtBroker, queues: list[PlannedQueue]) -> None:
        part.done |= {queue.queue_id for queue in queues}
        assert part.way is not None
        done = [queue.queue_id for queue in queues]
        self._journal.write(place.broker_name, way=part.way.value, done=done)
        self._on_change()

    async def _time_that_fits(self, place: Place) -> int:
        """The time by which the broker comes to the plan's targets. Raises ResetRefused if there is none."""
        queues = {message_queue(self._plan, queue): queue for queue in self._queues(place)}
        if self._plan.at_ms == END:
            bounds = await self._reader.bounds(self._plan.topic)
            ends = {name: stats.max_offset for name, stats in bounds.items()}
            if all(ends.get(name) == queue.target for name, queue in queues.items()):
                return END
        at_ms = self._plan.created_ms if self._plan.at_ms == END else self._plan.at_ms
        assert at_ms is not None
        for name, queue in queues.items():
            found = await self._reader.offset_at(name, at_ms)
            if not self._plan.is_forward_allowed and queue.now is not None:
                found = min(found, queue.now)
            if found != queue.target:
                raise ResetRefused(
                    f"{place.broker_name} would go to {found} in queue {queue.queue_id} and the plan says "
                    f"{queue.target}; plan anew, or stop the clients of {self._plan.group} and apply again"
                )
        return at_ms

    def _queues(self, place: Place) -> list[PlannedQueue]:
        return self._plan.queues_of(place.broker_name)
