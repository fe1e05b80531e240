"""What it costs a master to have ten slaves that copy its log at once.

Ours has ten slaves. Apache RocketMQ's has ten readers that speak its protocol and throw away what they get:
ten Java processes more would be too much for most machines, and only the master's time counts here.
"""

import multiprocessing
import selectors
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

from bench.ha_catch_up import fill
from bench.lean_sends import LeanClient
from bench.replica_groups import Node, ReplicaGroup, RocketMQGroup, wait_in_step
from bench.table import Row

_SLAVES = 10
_LOG_BYTES = 256 << 20
_READ_BYTES = 1 << 20
# the body's place in the log, its size
_HEAD = struct.Struct(">qi")
_ACK = struct.Struct(">q")


def ten_rows(client: LeanClient, ours: ReplicaGroup, peer: RocketMQGroup) -> list[Row]:
    cost, peer_cost = _slaves_cost(client, ours), _readers_cost(client, peer)
    return [
        Row(
            f"ten slaves at once: the master's CPU a GB sent, {_LOG_BYTES >> 20} MiB each",
            f"{cost:.2f} s",
            f"RocketMQ {peer_cost:.2f} s",
            cost / peer_cost,
            "",
            None,
        )
    ]


def _slaves_cost(client: LeanClient, group: ReplicaGroup) -> float:
    master = _filled(client, group)
    used_s = master.cpu_s()
    with ThreadPoolExecutor(_SLAVES) as starting:
        slaves = list(starting.map(group.start_slave, range(1, _SLAVES + 1)))
        wait_in_step(master, slaves=_SLAVES)
    cost = _cost(master, used_s)
    for node in (*slaves, master):
        node.destroy()
    return cost


def _readers_cost(client: LeanClient, group: RocketMQGroup) -> float:
    master = _filled(client, group)
    used_s = master.cpu_s()
    readers = multiprocessing.get_context("fork").Process(
        target=_read_all, args=(group.ha_address, master.status().log_end)
    )
    readers.start()
    readers.join()
    if readers.exitcode:
        raise RuntimeError(f"the readers ended with code {readers.exitcode}")
    cost = _cost(master, used_s)
    master.destroy()
    return cost


def _filled(client: LeanClient, group: ReplicaGroup) -> Node:
    master = group.start_master("ASYNC_MASTER")
    fill(client, master, until=_LOG_BYTES)
    return master


def _cost(master: Node, used_s: float) -> float:
    """CPU seconds for each GB that went out."""
    used_s = master.cpu_s() - used_s
    return used_s / (_SLAVES * master.status().log_end / 1e9)


class _Reader:
    """One slave of RocketMQ's, as far as its master can see."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.peer = socket.create_connection((host, int(port)))
        self.peer.sendall(_ACK.pack(0))
        self.end = 0
        self._rest = b""

    def read(self) -> None:
        """Take what came, and acknowledge the last frame that is whole."""
        data = memoryview(self._rest + self.peer.recv(_READ_BYTES))
        position, end = 0, self.end
        while len(data) - position >= _HEAD.size:
            place, size = _HEAD.unpack_from(data, position)
            if len(data) - position < _HEAD.size + size:
                break
            end = place + size
            position += _HEAD.size + size
        self._rest = bytes(data[position:])
        if end > self.end:
            self.end = end
            self.peer.sendall(_ACK.pack(end))


def _read_all(address: str, log_end: int) -> None:
    with selectors.DefaultSelector() as waiting:
        for _ in range(_SLAVES):
            reader = _Reader(address)
            waiting.register(reader.peer, selectors.EVENT_READ, reader)
        left = _SLAVES
        while left:
            for key, _ in waiting.select():
                reader = key.data
                reader.read()
                if reader.end >= log_end:
                    waiting.unregister(reader.peer)
                    reader.peer.close()
                    left -= 1
