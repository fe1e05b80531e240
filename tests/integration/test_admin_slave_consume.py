"""``tanist admin`` and a master whose slave was read and is gone, or that nobody has replaced."""

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tanist.cli.exit_codes import Exit
from tanist.cli.main import tanist
from tanist.coord import Create, open_registry
from tanist.errors import ResponseError
from tanist.model.reading import EndedBy, ReadRecord, encode_record, read_record_path
from tanist.protocol.codes import ResponseCode
from tanist.testing import EmbeddedBroker
from tests.support.requests import TOPIC, pull_request, send_request
from tests.support.site import wait_until
from tests.support.tanist_group import ControllerProcess
from tests.support.wire import Wire

GROUP, SLAVE = "embedded", "127.0.0.1:1"
SERVED = ReadRecord(group=GROUP, term=4, reader=SLAVE, second=SLAVE, reason="the master was gone")
UNKNOWN = ReadRecord(group=GROUP, term=4, second=SLAVE, ended_by=EndedBy.HAND_BACK, round=1)


def admin(*arguments: str) -> Result:
    return CliRunner().invoke(tanist, ["admin", *arguments])


def status(address: str) -> dict[str, Any]:
    shown = admin("slaveConsumeStatus", "-b", address, "--json")
    assert shown.exit_code == 0, shown.output
    return next(each["status"] for each in json.loads(shown.stdout) if each["brokerAddr"] == address)


@contextmanager
def master(folder: Path, record: ReadRecord | None = None) -> Generator[EmbeddedBroker]:
    """A master whose group has this record already."""
    with ControllerProcess(folder / "controller") as controller:
        coordinator = f"tanist://{controller.address}"

        async def write(record: ReadRecord) -> None:
            async with open_registry(coordinator) as registry:
                await registry.commit(Create(read_record_path(GROUP), encode_record(record)))

        if record is not None:
            asyncio.run(write(record))
        settings = {"coordinator": coordinator}
        with EmbeddedBroker(store=folder / "store", topics={TOPIC: 1}, settings=settings) as broker:
            wait_until(lambda: status(broker.address)["state"] != "starting")
            yield broker


def test_a_master_without_slaves_serves_and_says_so(tmp_path: Path) -> None:
    with master(tmp_path) as broker:
        found = status(broker.address)
        refused = admin("endSlaveConsume", "-b", broker.address, "--yes")
        why = admin("why", GROUP, "not-readable", "-b", broker.address)
    assert (found["permission"], found["state"], found["registry"]["state"]) == (
        "FULL",
        "serving",
        "connected",
    )
    assert refused.exit_code == 1
    assert "no slave consumption to end" in refused.output
    assert f"{GROUP} is readable: {broker.address}" in why.stdout


@pytest.mark.behaviour("S3-37")
@pytest.mark.parametrize("record", [SERVED, UNKNOWN])
def test_a_master_serves_no_old_offsets_until_an_operator_says_so(record: ReadRecord, tmp_path: Path) -> None:
    with master(tmp_path, record) as broker, Wire(broker.address) as wire:
        assert (status(broker.address)["permission"], status(broker.address)["duplicatesIfEnded"]) == (
            "NONE",
            {},
        )
        assert wire.ask(pull_request()).code == ResponseCode.NO_PERMISSION
        why = admin("why", GROUP, "not-readable", "-b", broker.address)
        assert f"endSlaveConsume -b {broker.address}" in why.stdout

        done = admin("endSlaveConsume", "-b", broker.address, "--yes", "--reason", "its disk broke")
        assert done.exit_code == 0, done.output
        assert "may do FULL" in done.stdout
        assert wire.ask(send_request(b"and on")).code == ResponseCode.SUCCESS
        ledger = json.loads(admin("slaveConsumeLedger", "-b", broker.address, "--json").stdout)
    (entry,) = ledger["entries"]
    assert (entry["event"], entry["term"], entry["reason"], entry["duplicatesAtMost"]) == (
        "ENDED_BY_OPERATOR",
        4,
        "its disk broke",
        0,
    )


def test_a_broker_without_a_coordinator_says_what_to_set() -> None:
    with EmbeddedBroker() as broker:
        shown = admin("slaveConsumeStatus", "-b", broker.address)
        refused = admin("slaveConsumeLedger", "-b", broker.address)
    assert shown.exit_code == Exit.NOT_SUPPORTED
    assert "set coordinator on all brokers" in shown.output
    assert isinstance(refused.exception, ResponseError)
