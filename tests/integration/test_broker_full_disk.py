"""A broker whose disk runs full refuses sends with a reason, serves pulls, and goes on when there is room."""

from pathlib import Path

from tanist.protocol import Command, ResponseCode
from tests.support.requests import NO_NAME_SERVER, pull_request, send_request
from tests.support.site import wait_until
from tests.support.small_disk import SmallDisk, run_on_small_disk
from tests.support.tanist_cluster import BrokerProcess
from tests.support.wire import Wire

SEGMENT_BYTES = 1 << 20


def send(wire: Wire, body: bytes = b"body") -> Command:
    return wire.ask(send_request(body))


def small_broker(disk: SmallDisk) -> BrokerProcess:
    return BrokerProcess(
        disk.path / "broker",
        NO_NAME_SERVER,
        mappedFileSizeCommitLog=SEGMENT_BYTES,
        cleanResourceInterval=100,
        flushIntervalConsumeQueue=100,
    )


def check_reads_go_on(wire: Wire) -> None:
    assert wire.ask(pull_request()).code == ResponseCode.SUCCESS


def pass_the_warning_level(disk: SmallDisk) -> None:
    with small_broker(disk) as broker, Wire(broker.address) as wire:
        assert send(wire).code == ResponseCode.SUCCESS
        # More than 90 % of the disk: diskSpaceWarningLevelRatio. There is room for the message all the same.
        disk.fill(leave_bytes=512 << 10)
        wait_until(lambda: send(wire).code != ResponseCode.SUCCESS)
        refusal = send(wire)
        assert refusal.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "of diskSpaceWarningLevelRatio; free some space" in (refusal.remark or "")
        check_reads_go_on(wire)
        disk.free()
        wait_until(lambda: send(wire).code == ResponseCode.SUCCESS)
        check_reads_go_on(wire)
        assert "Traceback" not in broker.process.output()
        broker.stop()
        assert broker.process.exit_code == 0


def run_out_of_space(disk: SmallDisk) -> None:
    """The disk is full before anybody has looked at its level."""
    with small_broker(disk) as broker, Wire(broker.address) as wire:
        assert send(wire).code == ResponseCode.SUCCESS
        check_reads_go_on(wire)  # A new group has to be saved, for which there will be no room.
        disk.fill()
        codes = {send(wire, bytes(100 << 10)).code for _ in range(30)}
        assert codes <= {ResponseCode.SUCCESS, ResponseCode.SERVICE_NOT_AVAILABLE}
        refusal = send(wire, bytes(100 << 10))
        assert refusal.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "free some space" in (refusal.remark or "")
        check_reads_go_on(wire)
        disk.free()
        wait_until(lambda: send(wire, bytes(100 << 10)).code == ResponseCode.SUCCESS)
        assert "Traceback" not in broker.process.output()
        broker.stop()
        assert broker.process.exit_code == 0


def start_on_a_full_disk(disk: SmallDisk) -> None:
    """A broker that was killed when its disk was full serves what it has when it is started again."""
    with small_broker(disk) as broker:
        with Wire(broker.address) as wire:
            assert send(wire).code == ResponseCode.SUCCESS
            check_reads_go_on(wire)
        disk.fill()
        broker.kill()
        broker.restart()
        with Wire(broker.address) as wire:
            check_reads_go_on(wire)
            wait_until(lambda: send(wire).code == ResponseCode.SERVICE_NOT_AVAILABLE)
            check_reads_go_on(wire)
            disk.free()
            wait_until(lambda: send(wire).code == ResponseCode.SUCCESS)
        assert "Traceback" not in broker.process.output()
        broker.stop()
        assert broker.process.exit_code == 0


def test_a_broker_starts_on_a_full_disk_and_serves_pulls(tmp_path: Path) -> None:
    run_on_small_disk(start_on_a_full_disk, tmp_path / "disk", "size=16m")


def test_above_the_warning_level_sends_are_refused_and_pulls_go_on(tmp_path: Path) -> None:
    run_on_small_disk(pass_the_warning_level, tmp_path / "disk", "size=16m")


def test_a_full_disk_refuses_sends_and_pulls_go_on(tmp_path: Path) -> None:
    run_on_small_disk(run_out_of_space, tmp_path / "disk", "size=16m")
