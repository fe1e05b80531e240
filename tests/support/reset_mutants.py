"""Planted bugs of orders to move a group, each as the machines of a simulation that has to find it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tanist.broker.handlers.resets import ResetHandler
from tanist.broker.offsets import OffsetTable
from tanist.broker.resets.order import GroupStanding, ResetOrder
from tanist.broker.resets.table import OrderTable
from tanist.client.consuming.reset_order import ResetOrder as ToldOrder
from tanist.client.consuming.resets import Resets
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.command import Command
from tanist.remoting import Connection


class MovesAllGroups(ResetHandler):
    """An order moves every group that reads the topic."""

    def _standing(self, order: ResetOrder) -> GroupStanding:
        offsets, topic = self._state.offsets, order.record.topic

        def move(targets: Mapping[int, int]) -> None:
            for group in offsets.groups_of(topic):
                offsets.move(group, topic, {queue_id: QueueOffset(to) for queue_id, to in targets.items()})

        return replace(super()._standing(order), move=move)


class AnswersAtOnce(ResetHandler):
    """An order is acknowledged before the slave has heard of it."""

    def _answer_when_safe(
        self,
        command: Command,
        connection: Connection,
        order: ResetOrder,
        answer: Callable[[Command], Command],
    ) -> Command:
        return answer(command)


class MovesWhatItHas(Resets):
    """A broadcasting member follows an order only in queues that it has taken."""

    def _start(self, targets: Mapping[MessageQueue, QueueOffset], order: ToldOrder | None = None) -> bool:
        taken = self._rebalancer.owned.by_queue
        had = {queue: to for queue, to in targets.items() if queue in taken}
        return super()._start(had, order)


def set_what_stands_as_found(table: OrderTable, offsets: OffsetTable) -> None:
    """After a crash only those queues are set again that stand where the order found them."""
    for order in table.unsaved():
        record = order.record
        for wanted in record.targets:
            found = offsets.find(record.group, record.topic, wanted.queue_id)
            if found == record.before.get(wanted.queue_id):
                offsets.commit(record.group, record.topic, wanted.queue_id, wanted.target)
