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
from tests.support.attacked import Master
from tests.support.relay import Relay
from tests.support.requests import TOPIC
from tests.support.wire import Wire

SECRET: Final = "a secret of both ends, long and random"
GROUP: Final = "embedded"
KEYS: Final = HaKeys(GROUP, Authentication.SECRET, SECRET.encode())
FILE_BYTES: Final = 1 << 20
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
        "mappedFileSizeCommitLog": str(FILE_BYTES),
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
        "mappedFileSizeCommitLog": str(FILE_BYTES),
        **settings,
    }
    with (
        EmbeddedBroker(store=store, settings=given) as broker,
        open_master(broker.address) as slave,
    ):
        yield slave


@contextmanager
def running_pair(settings: Mapping[str, str] = {}) -> Generator[Pair]:
    """Both, in step; ``settings`` are the master's."""
    with (
        running_master(settings) as master,
        Relay(master.ha_address) as cable,
        running_slave(cable) as slave,
    ):
        master.wait_in_step()
        yield Pair(master, slave, cable)


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
