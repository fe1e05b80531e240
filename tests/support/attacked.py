"""A master under attack, as its operators and its producers see it: what a trial of one attack showed."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from tanist.protocol import Command, RequestCode, ResponseCode
from tests.support.ha_attacks import Attack, Ground
from tests.support.intruder import Intruder
from tests.support.requests import send_request
from tests.support.wire import Wire

JEWELS: Final = b"the crown jewels"
"""What every message says. Whoever hears it was sent a piece of the log."""
_IN_STEP_TIMEOUT_S = 60.0
_POLL_S = 0.1
_LISTEN_S = 1.0


class Link(msgspec.Struct, frozen=True):
    """One slave as a master shows it (907)."""

    addr: str
    acked_to: int = msgspec.field(name="slaveAckOffset")
    lag_bytes: int = msgspec.field(name="diff")
    is_in_sync: bool = msgspec.field(name="inSync")
    sent_from: int = msgspec.field(name="transferFromWhere", default=0)
    ack_kind: str = msgspec.field(name="ackKind", default="")
    """Tanist's alone."""


class RefusedPeer(msgspec.Struct, frozen=True):
    """Who was turned away, and why."""

    addr: str
    reason: str
    received: str


class HaStatus(msgspec.Struct, frozen=True):
    """What a broker shows about its replication (907), whatever the numbers are."""

    log_end: int = msgspec.field(name="masterCommitLogMaxOffset")
    in_sync_count: int = msgspec.field(name="inSyncSlaveNums")
    links: list[Link] = msgspec.field(name="haConnectionInfo")
    client: dict[str, Any] = msgspec.field(name="haClientRuntimeInfo")
    refused: list[RefusedPeer] = msgspec.field(name="refusedPeers", default=[])
    """Tanist's alone, as is all that follows."""
    refused_counts: dict[str, int] = msgspec.field(name="refusedCounts", default={})

    @property
    def refused_count(self) -> int:
        return sum(self.refused_counts.values())


class Cable(Protocol):
    """What lies between a master and its real slave."""

    def cut(self) -> None: ...

    def mend(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Sent:
    """One send and how it was answered."""

    status: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What one attack did to a master."""

    attack: str
    believed: list[int]
    """The offsets that the master shows as acknowledged by the intruder."""
    lags: list[int]
    """The lags that it shows for the intruder."""
    in_sync_count: int
    """How many slaves it says are in step, one real slave among them."""
    heard_bytes: int
    is_log_heard: bool
    """Whether the intruder was sent a piece of the log."""
    beside_slave: Sent
    """A send while the real slave is connected too."""
    is_slave_in_step: bool
    """Whether the real slave had that message soon, on the connection that it had before."""
    without_slave: Sent
    """A send while the intruder is the only one connected."""
    closed_after_s: float | None
    """When the master closed the last connection, from its first byte on; None if it did not in time."""
    after: Sent
    """A send when the intruder has gone, and the real slave is not back."""


class Master:
    """A master that is asked like any other."""

    def __init__(self, address: str, ha_address: str) -> None:
        self.address = address
        self._wire = Wire(address)
        self.address = address
        self.ha_address = ha_address

    def close(self) -> None:
        self._wire.close()

    def status(self) -> HaStatus:
        answer = self._wire.ask(Command.request(RequestCode.GET_BROKER_HA_STATUS))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return msgspec.json.decode(answer.body, type=HaStatus)

    def send(self, body: bytes = JEWELS) -> Sent:
        begun_s = time.monotonic()
        answer = self._wire.ask(send_request(body))
        return Sent(_status(answer), time.monotonic() - begun_s)

    def delete_old_files(self) -> None:
        """Have it do now what it does once a day."""
        answer = self._wire.ask(Command.request(RequestCode.DELETE_EXPIRED_COMMITLOG))
        assert answer.code == ResponseCode.SUCCESS, answer.remark

    def is_in_step(self, *, count: int = 1) -> bool:
        """Whether so many slaves hold all of the log, and no more are connected."""
        status = self.status()
        return [link.lag_bytes for link in status.links] == [0] * count

    def wait_in_step(self, *, count: int = 1) -> float:
        """Wait until so many slaves hold all of the log; how long that took."""
        try:
            return wait_until(lambda: self.is_in_step(count=count))
        except AssertionError as error:
            raise AssertionError(f"{count} slaves in step were due, found {self.status()}") from error


def _status(answer: Command) -> str:
    if answer.code == ResponseCode.SUCCESS:
        return "SEND_OK"
    return ResponseCode(answer.code).name if answer.code in set(ResponseCode) else str(answer.code)


def wait_until(is_so: Callable[[], bool], *, timeout_s: float = _IN_STEP_TIMEOUT_S) -> float:
    """Ask again and again until something is so; how long that took."""
    begun_s = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun_s < timeout_s, f"it is not so after {timeout_s:g} s"
        time.sleep(_POLL_S)
    return time.monotonic() - begun_s


def try_attack(
    master: Master,
    cable: Cable,
    attack: Attack,
    ground: Ground,
    *,
    patience_s: float,
    listen_s: float = _LISTEN_S,
) -> Seen:
    """Play one attack on a master with one real slave, which is in step before and is back afterwards."""
    begun_s = time.monotonic()
    real = [link.addr for link in master.status().links]
    with Intruder(master.ha_address) as intruder:
        intruder.play(attack, ground)
        intruder.listen(listen_s)
        believed = [link for link in master.status().links if link.addr.lstrip("/") in intruder.addresses]
        in_sync_count = master.status().in_sync_count
        beside_slave = master.send()
        is_slave_in_step = _comes_in_step(master, real)
        cable.cut()
        wait_until(lambda: not [link for link in master.status().links if link.addr in real])
        without_slave = master.send()
        intruder.listen(patience_s)
        closed_after_s = None if intruder.open_count else time.monotonic() - begun_s
        heard = bytes(intruder.heard)
    wait_until(lambda: not master.status().links)
    after = master.send()
    cable.mend()
    master.wait_in_step()
    return Seen(
        attack=attack.name,
        believed=[link.acked_to for link in believed],
        lags=[link.lag_bytes for link in believed],
        in_sync_count=in_sync_count,
        heard_bytes=len(heard),
        is_log_heard=JEWELS in heard,
        beside_slave=beside_slave,
        is_slave_in_step=is_slave_in_step,
        without_slave=without_slave,
        closed_after_s=closed_after_s,
        after=after,
    )


def _comes_in_step(master: Master, addresses: list[str]) -> bool:
    try:
        wait_until(
            lambda: [link.lag_bytes for link in master.status().links if link.addr in addresses] == [0],
            timeout_s=5,
        )
    except AssertionError:
        return False
    return True
