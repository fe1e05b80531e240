"""Who is read of several replicas: whom the options name, and whoever took over when a broker failed.

Without Spark around it, which has no part in this: it only asks for the next batch.
"""

from pathlib import Path
from typing import Any

import pytest

from tanist.client.session.wire import Wire
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.spark.errors import SparkError
from tanist.sync import Message, Producer
from tests.support.fixed_pair import FixedPair
from tests.support.requests import TOPIC
from tests.support.spark_pulls import pull_batches
from tests.support.tanist_group import GroupProcess

pytestmark = [pytest.mark.partner("arrow"), pytest.mark.takes(15)]

COUNT = 40
BODY = b"x" * (256 << 10)
"""So large that a batch holds a few messages: most of them are read after the failover."""


def send(namesrv: str) -> None:
    with Producer(group="test", namesrv=namesrv) as producer:
        for number in range(COUNT):
            producer.send(Message(TOPIC, b"%d " % number + BODY))


def offsets_by_queue(batches: list[Any]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for batch in batches:
        for queue_id, offset in zip(
            *(batch[name].to_pylist() for name in ("queueId", "queueOffset")), strict=True
        ):
            found.setdefault(queue_id, []).append(offset)
    return found


def is_whole(batches: list[Any]) -> bool:
    """Whether every message came once, in the order of its queue."""
    found = offsets_by_queue(batches)
    in_order = all(offsets == list(range(len(offsets))) for offsets in found.values())
    return in_order and sum(map(len, found.values())) == COUNT


def pull_from(namesrv: str, read_from: str, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, set[str]]:
    """Whether such a read got everything, and who was pulled from for it."""
    exchange, pulled = Wire.exchange, set[str]()

    async def seen(wire: Wire, address: str, command: Command, **timeouts: Any) -> Command:
        if command.code == RequestCode.PULL_MESSAGE:
            pulled.add(address)
        return await exchange(wire, address, command, **timeouts)

    with monkeypatch.context() as patched:
        patched.setattr(Wire, "exchange", seen)
        batches = list(pull_batches(namesrv, subscribe=TOPIC, readFrom=read_from))
    return is_whole(batches), pulled


def test_slaves_are_read_to_spare_their_master_and_masters_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GroupProcess(tmp_path) as group:
        namesrv, master, (slave,) = group.names.address, group.master(), group.slaves()
        send(namesrv)

        assert pull_from(namesrv, "master", monkeypatch) == (True, {master.address})
        assert pull_from(namesrv, "slave", monkeypatch) == (True, {slave.address})
        assert pull_from(namesrv, "any", monkeypatch) == (True, {slave.address})
        slave.kill()
        assert pull_from(namesrv, "any", monkeypatch) == (True, {master.address})


def test_a_read_goes_on_at_the_slave_of_a_master_with_fixed_roles(tmp_path: Path) -> None:
    with FixedPair(tmp_path, slaveConsumeChecks=2, brokerStandInMills=0) as pair:
        send(pair.names.address)
        # The registry says who is read, and it is the master. A task would wait half a minute.
        with pytest.raises(SparkError, match=r"no slave of broker-a may be read now \(.* is not readable"):
            next(pull_batches(pair.names.address, subscribe=TOPIC, readFrom="slave"))
        reading = pull_batches(pair.names.address, subscribe=TOPIC)
        batches = [next(reading)]
        pair.kill_master()
        batches += reading

    assert len(batches) > 2
    assert is_whole(batches)


def test_a_read_goes_on_at_the_slave_that_became_master(tmp_path: Path) -> None:
    with GroupProcess(tmp_path) as group:
        send(group.names.address)
        reading = pull_batches(group.names.address, subscribe=TOPIC)
        batches = [next(reading)]
        group.master().kill()
        batches += reading

    assert is_whole(batches)
    # Under a controller brokers tell which master wrote what.
    assert set(batches[0]["epoch"].to_pylist()) == {1}
