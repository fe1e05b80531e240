"""Each means by which a cluster is broken bites, and what it has done can be mended."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from tanist.chaos.forgetful_disks import ForgetfulDisk
from tanist.chaos.means import NotPossible
from tests.support.partners import PartnerMissing, do_without


@contextmanager
def possible(means: AbstractContextManager[object]) -> Generator[None]:
    """Have a means while the block lasts. What a machine can not have fails where all has to be run."""
    with ExitStack() as stack:
        try:
            stack.enter_context(means)
        except NotPossible as error:
            do_without(PartnerMissing(str(error)))
        yield


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
