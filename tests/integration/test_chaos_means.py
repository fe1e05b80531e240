"""Each means by which a cluster is broken bites, and what it has done can be mended."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from scripts.chaos import Hand
from tanist.chaos import memory
from tanist.chaos.clocks import WallClock
from tanist.chaos.disks import SmallDisk
from tanist.chaos.forgetful_disks import ForgetfulDisk
from tanist.chaos.hosts import Switch
from tanist.chaos.means import NotPossible
from tanist.chaos.slow_disks import SlowDisk
from tanist.check.ports import free_port
from tanist.protocol import Command, RequestCode
from tanist.protocol.frame import encode_command
from tanist.up.member import Member
from tanist.up.plan import MemberPlan
from tests.support.conditions import until
from tests.support.obedient import SILENCE_S, Ears, Obedient
from tests.support.partners import PartnerMissing, do_without
from tests.support.zookeeper import Ensemble

JUMP_S = 3600


@contextmanager
def possible(means: AbstractContextManager[object]) -> Generator[None]:
    """Have a means while the block lasts. What a machine can not have fails where all has to be run."""
    with ExitStack() as stack:
        try:
            stack.enter_context(means)
        except NotPossible as error:
            do_without(PartnerMissing(str(error)))
        yield


async def answers(port: int, *, timeout_s: float = SILENCE_S) -> bool:
    """Whether a server says something to a question within this time."""
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(encode_command(Command.request(RequestCode.GET_BROKER_CLUSTER_INFO)))
                return bool(await reader.read(1))
            finally:
                writer.transport.abort()
    except (TimeoutError, OSError):
        return False


def wait_until(is_so: Callable[[], bool]) -> None:
    asyncio.run(until(is_so))


WRITER = """
import mmap, os, sys
folder = sys.argv[1]

def written(name, data):
    handle = os.open(f"{folder}/{name}", os.O_RDWR | os.O_CREAT)
    os.write(handle, data)
    return handle

handle = written("log", bytes(1 << 16))
view = mmap.mmap(handle, 1 << 16)
view[:4] = b"kept"
view.flush()
view[4:8] = b"lost"
view[40_000:40_004] = b"lost"
os.fdatasync(written("renamed", b"kept"))
os.rename(f"{folder}/renamed", f"{folder}/table")
os.write(written("table", b"lost, and longer"), b"than what was synced")
written("never", b"lost")
os.kill(os.getpid(), 9)
"""


def test_a_forgetful_disk_keeps_what_was_synced_and_nothing_else(tmp_path: Path) -> None:
    disk = ForgetfulDisk(tmp_path / "disk")
    with possible(disk):
        subprocess.run([sys.executable, "-c", WRITER, tmp_path / "disk"], check=False)
        disk.lose()
        assert not (tmp_path / "disk").is_mount()
        disk.mount()
        found = {path.name: path.read_bytes() for path in (tmp_path / "disk").iterdir()}
        assert found == {"log": b"kept".ljust(1 << 16, b"\0"), "table": b"kept", "never": b""}
        (tmp_path / "disk" / "after").write_bytes(b"written")
        assert (tmp_path / "disk" / "after").read_bytes() == b"written"


def test_a_small_disk_is_filled_to_its_last_byte_and_freed(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "disk")
    with possible(disk):
        (tmp_path / "disk" / "before").write_bytes(b"before")
        disk.fill()
        with pytest.raises(OSError, match="No space"):
            (tmp_path / "disk" / "more").write_bytes(bytes(1 << 16))
        disk.free()
        (tmp_path / "disk" / "more").write_bytes(bytes(1 << 16))
        assert (tmp_path / "disk" / "before").read_bytes() == b"before"


def test_a_slow_disk_takes_its_time_for_a_process_until_it_is_freed(tmp_path: Path) -> None:
    disk = SlowDisk(tmp_path, "means")
    path = str(tmp_path / "file")
    synced = (
        "(start := time.monotonic(), file.write(bytes(1 << 18)), file.flush(), os.fdatasync(file),"
        " time.monotonic() - start)[-1]"
    )
    with possible(disk), Obedient() as writer:
        writer.do(
            f"globals().update(os=__import__('os'), time=__import__('time'), file=open({path!r}, 'wb'))"
        )
        disk.slow(writer.pid)
        assert str(writer.pid) in disk.slowed()
        # 256 KiB at 128 KiB a second, of which the first may pass at once.
        assert float(writer.do(synced)) > 1.0
        disk.free()
        assert disk.slowed() == []


def test_a_capped_process_gets_no_more_memory_until_it_is_uncapped() -> None:
    with Obedient() as hungry:
        assert hungry.do("len(bytes(1 << 26))") == str(1 << 26)
        memory.cap(hungry.pid)
        assert hungry.do("len(bytes(1 << 26))") == "MemoryError()"
        memory.uncap(hungry.pid)
        assert hungry.do("len(bytes(1 << 26))") == str(1 << 26)


def test_a_wall_clock_jumps_and_comes_back(tmp_path: Path) -> None:
    clock = WallClock(tmp_path / "clock")
    with Obedient(*clock.within) as process:

        def ahead_s() -> float:
            return float(process.do("__import__('time').time()")) - time.time()

        steady = float(process.do("__import__('time').monotonic()"))
        assert abs(ahead_s()) < JUMP_S / 2
        clock.set(JUMP_S)
        wait_until(lambda: ahead_s() > JUMP_S / 2)
        assert float(process.do("__import__('time').monotonic()")) - steady < JUMP_S / 2
        clock.set(0)
        wait_until(lambda: ahead_s() < JUMP_S / 2)


def test_a_host_is_cut_off_or_muted_and_mended() -> None:
    switch = Switch(201, hosts=2)
    with possible(switch):
        first, second = switch.hosts
        with Ears(first) as one, Ears(second) as other:
            assert (one.reaches(other), other.reaches(one)) == (True, True)
            first.cut()
            assert (one.reaches(other), other.reaches(one)) == (False, False)
            first.mend()
            assert (one.reaches(other), other.reaches(one)) == (True, True)
            first.mute(second.address)
            assert (one.reaches(other), other.reaches(one)) == (False, True)
            first.mend()
            assert (one.reaches(other), other.reaches(one)) == (True, True)


def test_a_member_is_frozen_killed_and_started_again(tmp_path: Path) -> None:
    with ExitStack() as held:
        port = free_port("127.0.0.1", (), held)
    settings = {"listenPort": str(port), "kvConfigPath": str(tmp_path / "kv.json")}
    member = Member(MemberPlan("namesrv", ("namesrv",), "The name server serves at ", settings), tmp_path)

    async def play() -> None:
        await member.start()
        assert await answers(port)
        member.pause()
        assert not await answers(port)
        member.resume()
        assert await answers(port, timeout_s=20.0)
        assert member.kill()
        await until(lambda: member.pid is None)
        assert not member.kill()
        await member.stop()
        await member.start()
        assert await answers(port, timeout_s=20.0)
        await member.crash()
        assert member.pid is None

    asyncio.run(play())


@pytest.mark.takes(10)
@pytest.mark.partner("java", "maven")
def test_the_leader_of_zookeeper_is_killed_or_frozen_and_comes_back(tmp_path: Path) -> None:
    with Ensemble(tmp_path, size=3) as ensemble:
        hand = Hand(ensemble)
        for strike in (hand.kill, hand.freeze):
            struck = ensemble.leader()
            strike()
            others = [server for server in ensemble.servers if server is not struck]
            wait_until(lambda others=others: any(server.mode == "leader" for server in others))
            hand.mend()
            assert struck.mode == "follower"
