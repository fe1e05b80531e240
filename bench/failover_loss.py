"""How many acknowledged messages a killed master takes with it, counted by reading all of them back.

The load is eight connections that send at full speed, each message once the last one is answered.
"""

import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.controlled_groups import TOPIC, ControlledGroup, Member, RocketMQTrio, TanistTrio
from bench.lean_client import send_request
from bench.replica_groups import QUEUES, wait_until
from bench.table import Row
from tanist.client.received import decode_messages
from tanist.model.route import MessageQueue
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.common import QueueOffsetResponse
from tanist.protocol.headers.offsets import GetMaxOffsetRequest
from tanist.protocol.headers.pull import PullMessageResponse
from tests.support.requests import pull_request
from tests.support.wire import Wire

_BEFORE_KILL = 2_000
_BODY_BYTES = 1024
_LAST = b"last"
"""Once this is read from a queue there is nothing before it that was not."""
_ALL_ACK: Mapping[str, object] = {"allAckInSyncStateSet": "true"}
_WEAK: Mapping[str, object] = {"allAckInSyncStateSet": "false", "inSyncReplicas": 1}


@dataclass(frozen=True)
class _Loss:
    """What came of some kills."""

    acknowledged: int
    lost: int

    def __str__(self) -> str:
        return f"{self.lost} of {self.acknowledged}"


class _Sender(threading.Thread):
    """Sends to one queue until its master is gone, and notes what was acknowledged."""

    def __init__(self, address: str, queue_id: int, prefix: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._queue_id = queue_id
        self._prefix = prefix
        self.acknowledged: list[bytes] = []

    def run(self) -> None:
        number = 0
        with Wire(self._address) as wire:
            while True:
                number += 1
                body = f"{self._prefix}-{self._queue_id}-{number}".encode()
                try:
                    answer = wire.ask(send_request(TOPIC, self._queue_id, body.ljust(_BODY_BYTES, b".")))
                except (OSError, AssertionError):
                    return
                if answer.code == ResponseCode.SUCCESS:
                    self.acknowledged.append(body)


def loss_rows(home: Path, rounds: int) -> list[Row]:
    """Kill masters at the strict setting, then at the weak one."""
    rows: list[Row] = []
    for kind, settings in (("allAckInSyncStateSet", _ALL_ACK), ("inSyncReplicas=1, no allAck", _WEAK)):
        with ExitStack() as running:
            ours, peer = (
                running.enter_context(side(home / f"{side.name}-{kind[:3]}", settings=settings))
                for side in (TanistTrio, RocketMQTrio)
            )
            mine, theirs = _kill_in_turns(ours, peer, rounds)
        is_strict = settings is _ALL_ACK
        rows.append(
            Row(
                f"acknowledged and lost in {rounds} kills, {kind}",
                str(mine),
                f"RocketMQ {theirs}",
                None,
                "0" if is_strict else "",
                mine.lost == 0 if is_strict else None,
            )
        )
    return rows


def _kill_in_turns(ours: ControlledGroup, peer: ControlledGroup, rounds: int) -> tuple[_Loss, _Loss]:
    seen: dict[ControlledGroup, list[_Loss]] = {ours: [], peer: []}
    for number in range(rounds):
        for group, losses in seen.items():
            losses.append(_kill(group, f"round{number}"))
            print(f"{group.name}: lost {losses[-1]}", file=sys.stderr)
    mine, theirs = (
        _Loss(sum(one.acknowledged for one in losses), sum(one.lost for one in losses))
        for losses in seen.values()
    )
    return mine, theirs


def _kill(group: ControlledGroup, prefix: str) -> _Loss:
    before = group.wait_in_step()
    master = group.member(before.master_address)
    successor = group.other(master)
    ends = [_queue_end(successor, queue_id) for queue_id in range(QUEUES)]
    senders = [_Sender(master.address, queue_id, prefix) for queue_id in range(QUEUES)]
    for sender in senders:
        sender.start()
    wait_until(
        lambda: sum(len(sender.acknowledged) for sender in senders) >= _BEFORE_KILL, what="there is load"
    )
    master.crash()
    for sender in senders:
        sender.join()
    held: set[bytes] = set()
    for queue_id, end in enumerate(ends):
        held |= _read_back(successor, queue_id, end)
    master.restart()
    acknowledged = [body for sender in senders for body in sender.acknowledged]
    return _Loss(len(acknowledged), sum(body not in held for body in acknowledged))


def _queue_end(member: Member, queue_id: int) -> int:
    with Wire(member.address) as wire:
        request = GetMaxOffsetRequest(topic=TOPIC, queue_id=queue_id)
        answer = wire.ask(Command.request(RequestCode.GET_MAX_OFFSET, request))
    return answer.header(QueueOffsetResponse).queue_offset


def _read_back(master: Member, queue_id: int, start: int) -> set[bytes]:
    """All messages of a queue from ``start`` on, once the new master takes some and shows them."""
    queue = MessageQueue(topic=TOPIC, broker_name="", queue_id=queue_id)
    held: set[bytes] = set()
    with Wire(master.address) as wire:
        last = send_request(TOPIC, queue_id, _LAST)
        wait_until(lambda: wire.ask(last).code == ResponseCode.SUCCESS, what="the new master takes messages")
        offset = start

        def is_all_read() -> bool:
            nonlocal offset
            answer = wire.ask(pull_request(offset, topic=TOPIC, queue_id=queue_id))
            if answer.code in (ResponseCode.SUCCESS, ResponseCode.PULL_OFFSET_MOVED):
                offset = answer.header(PullMessageResponse).next_begin_offset
            if answer.code == ResponseCode.SUCCESS:
                held.update(
                    bytes(one.body).rstrip(b".") for one in decode_messages(memoryview(answer.body), queue)
                )
            return _LAST in held

        wait_until(is_all_read, what="all messages are read back", poll_s=0)
    return held
