"""Our Java programs, and what they say about the messages they sent and received."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.support.process import ForeignProcess
from tests.support.rocketmq.jars import Installation

MAIN_CLASS = "tanist.partner.Main"


def ask(installation: Installation, command: str, *, home: Path, **options: object) -> list[dict[str, Any]]:
    """Run one command of ``java/Main.java`` and return its answers, one JSON object a line."""
    answers = installation.run(MAIN_CLASS, command, encode_options(options), home=home)
    return [msgspec.json.decode(line, type=dict[str, Any]) for line in answers.splitlines()]


def encode_options(options: Mapping[str, object]) -> str:
    return msgspec.json.encode(options).decode()


class Sent(msgspec.Struct, frozen=True, rename="camel"):
    """One send as its producer saw it."""

    status: str
    broker_name: str
    queue_id: int
    queue_offset: int
    message_id: str
    offset_message_id: str


class BackgroundProducer:
    """A producer that goes on sending while the test does something to its broker."""

    def __init__(self, process: ForeignProcess) -> None:
        self.process = process

    def wait_for_offset(self, queue_offset: int, *, timeout_s: float) -> None:
        """Wait until a message with this queue offset was answered."""
        self.process.wait_for_output(f'"queueOffset":{queue_offset},', timeout_s=timeout_s)

    def answered(self) -> list[Sent]:
        """The sends that were answered so far, in the order in which they were made."""
        whole_lines = self.process.output().split("\n")[:-1]
        return [msgspec.json.decode(line, type=Sent) for line in whole_lines if line.startswith("{")]


class KeyQuestion(msgspec.Struct, frozen=True, rename="camel"):
    """Which messages of a topic carry this key? Or, if ``is_unique``, have it as their unique id?"""

    topic: str
    key: str
    is_unique: bool = False


class TimeQuestion(msgspec.Struct, frozen=True, rename="camel"):
    """Which offsets of a queue belong to these times? ``boundary`` is LOWER or UPPER."""

    topic: str
    broker_name: str
    queue_id: int
    boundary: str
    timestamps: list[int]


class Received(msgspec.Struct, frozen=True, rename="camel"):
    """One stored message as a consumer saw it. The body is as it was sent: compression is undone."""

    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    log_offset: int
    stored_bytes: int
    sys_flag: int
    flag: int
    born_timestamp: int
    born_host_hex: str
    store_timestamp: int
    reconsume_times: int
    prepared_transaction_offset: int
    message_id: str
    offset_message_id: str
    body_base64: str
    properties: dict[str, str]

    @property
    def born_host(self) -> bytes:
        """The packed address and port."""
        return bytes.fromhex(self.born_host_hex)

    @property
    def body(self) -> bytes:
        return base64.b64decode(self.body_base64)

    @property
    def tags(self) -> str | None:
        return self.properties.get("TAGS")

    @property
    def keys(self) -> str | None:
        return self.properties.get("KEYS")
