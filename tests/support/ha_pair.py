"""A master and its slave in this process, with a cable between them."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tanist.ha.keys import HaKeys
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.ha_hello import Authentication
from tanist.testing import EmbeddedBroker
from tests.support.attacked import JEWELS, Master
from tests.support.relay import Relay
from tests.support.requests import TOPIC, send_request
from tests.support.wire import Wire

SECRET: Final = "a secret of both ends, long and random"
GROUP: Final = "embedded"
KEYS: Final = HaKeys(GROUP, Authentication.SECRET, SECRET.encode())
FILE_BYTES: Final = 1 << 20
_SMALL: Final = {"mappedFileSizeCommitLog": str(FILE_BYTES)}
_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Pair:
    """What a test plays with."""

    master: Master
    slave: Master
    """It answers the same questions."""
    cable: Relay


@contextmanager
def running_master(settings: Mapping[str, str] = {}, *, store: Path | None = None) -> Generator[Master]:
    """A SYNC_MASTER whose sends wait for one slave."""
    given = {
        "brokerRole": "SYNC_MASTER",
        "haSecret": SECRET,
        "slaveTimeout": "5000",
        **_SMALL,
        **settings,
    }
    with (
        EmbeddedBroker(topics={TOPIC: 1}, store=store, settings=given) as broker,
        open_master(broker.address) as master,
    ):
        yield master


@contextmanager
def running_slave(
    cable: Relay, settings: Mapping[str, str] = {}, *, store: Path | None = None, broker_id: int = 1
) -> Generator[Master]:
    given = {
        "brokerRole": "SLAVE",
        "brokerId": str(broker_id),
        "haSecret": SECRET,
        "haMasterAddress": cable.address,
        **_SMALL,
        **settings,
    }
    with (
        EmbeddedBroker(store=store, settings=given) as broker,
        open_master(broker.address) as slave,
    ):
        yield slave


@contextmanager
def running_pair(
    settings: Mapping[str, str] = {}, slave_settings: Mapping[str, str] = {}, *, store: Path | None = None
) -> Generator[Pair]:
    """Both, in step; the store is the master's."""
    with (
        running_master(settings, store=store) as master,
        Relay(master.ha_address) as cable,
        running_slave(cable, slave_settings) as slave,
    ):
        master.wait_in_step()
        yield Pair(master, slave, cable)


def make_log(store: Path) -> None:
    """Leave a log of two files whose first one was deleted, as retention would."""
    with (
        EmbeddedBroker(topics={TOPIC: 1}, store=store, settings=_SMALL) as broker,
        Wire(broker.address) as wire,
    ):
        for _ in range(20):
            answer = wire.ask(send_request(JEWELS.ljust(FILE_BYTES // 16)))
            assert answer.code == ResponseCode.SUCCESS, answer.remark
    (store / "commitlog" / f"{0:020}").unlink()


@contextmanager
def open_master(address: str) -> Generator[Master]:
    with Wire(address) as wire:
        answer = wire.ask(Command.request(RequestCode.GET_BROKER_CONFIG))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
    (port,) = re.findall(r"^haListenPort=(\d+)$", bytes(answer.body).decode(), re.MULTILINE)
    master = Master(address, f"{_HOST}:{port}")
    try:
        yield master
    finally:
        master.close()
