"""A process that archives, and kills itself right before its n-th rename: ``python -m … NAMESRV DIR N``.

All that an archive has others see, and all that counts, is renamed into its place: so these are the moments.
With 0 it lives, and ends when all is archived.
"""

import os
import signal
import sys
from pathlib import Path

from tanist.spark.archive.folder import new_about, open_for_writing
from tanist.spark.archive.from_cluster import ClusterSource
from tanist.spark.archive.job import archive
from tanist.spark.archive.records import CLUSTER


def die_before_rename(number: int) -> None:
    seen = 0

    def hook(event: str, _arguments: object) -> None:
        nonlocal seen
        if event == "os.rename":
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def main(namesrv: str, root: str, number: str) -> None:
    source = ClusterSource(namesrv=namesrv, pattern="Orders.*", batch_messages=40, until_now=True)
    with open_for_writing(Path(root), new_about(CLUSTER)) as folder:
        if int(number):
            die_before_rename(int(number))
        archive(folder, source, tasks=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
