"""How far a slave is behind while its master is sent to at a steady pace: in messages, and in offsets."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.figures import percentile
from bench.lean_client import send_request
from bench.lean_sends import BODY_BYTES
from bench.replica_groups import QUEUES, Node, acked_to, wait_in_step, wait_until
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import encode_body
from tanist.protocol.headers.offsets import UpdateConsumerOffsetRequest
from tests.support.wire import Wire

PACE = 12_000
"""Messages a second."""
_BATCH = 12
LOOK_S = 0.0002
_TOPIC = "Paced"
_GROUP = "Committing"
_SAMPLE_S = 0.005


@dataclass(frozen=True)
class LoadedLag:
    """What was seen while messages came at a pace, and how fast they really came."""

    p50_bytes: float
    worst_bytes: float
    rate: float


def lag_under_load(master: Node, duration_ms: int) -> LoadedLag:
    """Send at the pace, and ask the master all the while how far its slave is."""
    is_over = threading.Event()
    lags: list[float] = []

    def sample() -> None:
        while not is_over.wait(_SAMPLE_S):
            status = master.status()
            lags.append(max(0, status.log_end - acked_to(status)))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        rate = _send_at_pace(master.address, duration_ms / 1000)
    finally:
        is_over.set()
        sampler.join()
    wait_in_step(master)
    return LoadedLag(percentile(lags, 0.5), max(lags), rate)


def commits_under_load(master: Node, slave: Node, numbers: Iterator[int], duration_ms: int) -> list[float]:
    """Commit offsets one by one, while the pace is sent: seconds from a commit to its being on the slave."""
    body = encode_body(SubscriptionGroupConfig(group_name=_GROUP))
    _do(master, Command.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body))
    sender = threading.Thread(target=_send_at_pace, args=(master.address, duration_ms / 1000))
    sender.start()
    taken: list[float] = []
    while sender.is_alive():
        taken.append(_commit(master, slave, next(numbers)))
        time.sleep(_SAMPLE_S)
    sender.join()
    return taken


def _commit(master: Node, slave: Node, wanted: int) -> float:
    request = UpdateConsumerOffsetRequest(
        consumer_group=_GROUP, topic=_TOPIC, queue_id=0, consumer_offset=QueueOffset(wanted)
    )
    began_s = time.perf_counter()
    _do(master, Command.request(RequestCode.UPDATE_CONSUMER_OFFSET, request))
    seen_s = wait_until(
        lambda: slave.consumer_offset(_GROUP, _TOPIC, 0) == wanted,
        what="a commit is on the slave",
        poll_s=LOOK_S,
    )
    return seen_s - began_s


def _do(node: Node, request: Command) -> None:
    answer = node.ask(request)
    if answer.code != ResponseCode.SUCCESS:
        raise RuntimeError(f"{node.address} refused {request.code}: {answer.remark}")


def _send_at_pace(address: str, duration_s: float) -> float:
    requests = [send_request(_TOPIC, queue, bytes(BODY_BYTES), batch=_BATCH) for queue in range(QUEUES)]
    began_s = time.perf_counter()
    sent = 0
    with Wire(address) as wire:
        while (now_s := time.perf_counter() - began_s) < duration_s:
            if sent > now_s * PACE:
                time.sleep(sent / PACE - now_s)
            answer = wire.ask(requests[sent // _BATCH % QUEUES])
            if answer.code != ResponseCode.SUCCESS:
                raise RuntimeError(f"{address} refused a batch: {answer.remark}")
            sent += _BATCH
    return sent / (time.perf_counter() - began_s)
