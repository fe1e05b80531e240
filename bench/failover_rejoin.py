"""How long an old master takes, from its start, until the new one sends it what it lacks.

Both logs have a gigabyte in common. A slave is in TRANSFER when its master shows what it has acknowledged.
"""

import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.controlled_groups import BROKER, TOPIC, ControlledGroup, Member, RocketMQTrio, TanistTrio
from bench.lean_sends import LeanClient
from bench.replica_groups import acked_to, wait_until
from bench.table import Row
from tanist.protocol import Command, RequestCode
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.java_json import decode_java_json
from tests.support.wire import Wire

_COMMON_BYTES = 1 << 30
_RECORD_BYTES = 1_300
"""A record of 1 KiB takes less than this in the log."""
_CONNECTIONS = 4
_BATCH = 32
_REJOIN_S = 2.0


@dataclass(frozen=True)
class _Rejoin:
    transfer_s: float
    in_set_s: float


def rejoin_rows(home: Path, rounds: int) -> list[Row]:
    with ExitStack() as running:
        client = running.enter_context(LeanClient(home / "lean"))
        groups: list[ControlledGroup] = [
            running.enter_context(side(home / side.name)) for side in (TanistTrio, RocketMQTrio)
        ]
        for group in groups:
            _fill(client, group)
        seen: dict[str, list[_Rejoin]] = {group.name: [] for group in groups}
        for _ in range(rounds):
            for group in groups:
                seen[group.name].append(_rejoin(group))
                print(f"{group.name}: {seen[group.name][-1]}", file=sys.stderr)
    return _rows(*seen.values())


def _fill(client: LeanClient, group: ControlledGroup) -> None:
    """Have both logs grow to the size wanted, and be equal."""
    master = group.master()
    while (left := _COMMON_BYTES - _status(master).log_end) > 0:
        client.send(
            master.address,
            connections=_CONNECTIONS,
            batch=_BATCH,
            topic=TOPIC,
            most=max(left // _RECORD_BYTES, _CONNECTIONS * _BATCH),
        )
    wait_until(lambda: acked_to(status := _status(master)) >= status.log_end, what="both logs are equal")


def _status(member: Member) -> HARuntimeInfo:
    with Wire(member.address) as wire:
        answer = wire.ask(Command.request(RequestCode.GET_BROKER_HA_STATUS))
    return decode_java_json(answer.body, HARuntimeInfo)


def _rejoin(group: ControlledGroup) -> _Rejoin:
    before = group.wait_in_step()
    old = group.member(before.master_address)
    old.crash()
    group.view.wait_for_epoch(BROKER, beyond=before.master_epoch)
    new = group.other(old)
    wait_until(lambda: (status := _status(new)).is_master and not status.slaves, what="it serves alone")
    with ThreadPoolExecutor(1) as other:
        began_s = time.perf_counter()
        starting = other.submit(old.restart)
        transfer_s = wait_until(lambda: acked_to(_status(new)) > 0, what="the old master follows the new")
        starting.result()
    group.wait_in_step()
    return _Rejoin(transfer_s - began_s, time.perf_counter() - began_s)


def _rows(ours: list[_Rejoin], peer: list[_Rejoin]) -> list[Row]:
    transfer, peer_transfer = (statistics.median(one.transfer_s for one in seen) for seen in (ours, peer))
    in_set, peer_in_set = (statistics.median(one.in_set_s for one in seen) for seen in (ours, peer))
    worst = max(one.transfer_s for one in ours)
    return [
        Row(
            f"old master with 1 GiB in common, {len(ours)} times, p50 / worst: start to TRANSFER",
            f"{transfer:.2f} / {worst:.2f} s",
            f"RocketMQ {peer_transfer:.2f} / {max(one.transfer_s for one in peer):.2f} s",
            transfer / peer_transfer,
            f"worst ≤ {_REJOIN_S:g} s",
            worst <= _REJOIN_S,
        ),
        Row(
            "  p50: in the sync state set again",
            f"{in_set:.2f} s",
            f"RocketMQ {peer_in_set:.2f} s",
            in_set / peer_in_set,
            "",
            None,
        ),
    ]
