"""How far a slave is behind while its master is sent to at a steady pace."""

import threading
import time
from dataclasses import dataclass

from bench.figures import percentile
from bench.lean_client import send_request
from bench.lean_sends import BODY_BYTES
from bench.replica_groups import QUEUES, Node, acked_to, wait_in_step
from tanist.protocol import ResponseCode
from tests.support.wire import Wire

PACE = 12_000
"""Messages a second."""
_BATCH = 12
_TOPIC = "Paced"
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
