"""``python -m bench [OPTIONS] [NAME ...]``: run the benchmarks named, or all, and print one table.

Without a name those are left out that run beside Apache RocketMQ if its jars would have to be fetched, and
those that take faults, which last for half an hour. ``--rounds`` says how many faults there are of each kind,
``--coordinator`` where our registry is in slave-consume, ``--sizes`` how much log the spark benchmarks read.
"""

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from bench import (
    broker,
    clients,
    console,
    embedded,
    failover,
    frames,
    ha,
    log,
    queues,
    remoting,
    reset,
    slave_consume,
    time_lookup,
    up,
)
from bench.table import Row, print_rows
from tests.support.fixed_pair import SQLITE, ZOOKEEPER
from tests.support.rocketmq.jars import is_fetched

_BENCHMARKS: dict[str, Callable[[], list[Row]]] = {
    "frames": frames.run,
    "log": log.run,
    "queues": queues.run,
    "time-lookup": time_lookup.run,
    "remoting": remoting.run,
    "embedded": embedded.run,
    "broker": broker.run,
    "clients": clients.run,
    "clients-rocketmq": clients.run_at_rocketmq,
    "ha": ha.run,
}
_BESIDE_ROCKETMQ = ("broker", "clients", "clients-rocketmq", "ha")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench")
    parser.add_argument("--rounds", type=int, help="faults of each kind, in failover and slave-consume")
    parser.add_argument("--coordinator", choices=(SQLITE, ZOOKEEPER), default=SQLITE, help="in slave-consume")
    parser.add_argument("--sizes", help="GiB of log to read, as 1,2,4, in spark-*")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args(arguments)
    known = {
        **_BENCHMARKS,
        # Parts of the former, and what lasts too long to be run with all.
        **ha.parts(),
        "reset": reset.run,
        "console": console.run,
        "up": up.run,
        "failover": lambda: failover.run(given.rounds),
        **failover.parts(given.rounds),
        "slave-consume": lambda: slave_consume.run(given.rounds, coordinator=given.coordinator),
        "spark-commitlog": lambda: _spark("spark_commitlog").run(given.sizes),
        "spark-archive": lambda: _spark("spark_archive").run(given.sizes),
        "spark-audit": lambda: _spark("spark_audit").run(given.sizes),
        "spark-read": lambda: _spark("spark_read").run(),
        "spark-write": lambda: _spark("spark_write").run(),
        "slave-consume-rocketmq": lambda: slave_consume.run_rocketmq(given.rounds),
    }
    unknown = set(given.names) - set(known)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in given.names or _ready():
        print(f"running {name} …", file=sys.stderr)
        rows += known[name]()
    print_rows(rows)
    return 0 if all(row.is_met is not False for row in rows) else 1


def _spark(name: str) -> Any:
    # Spark is an extra, and takes its time to be imported.
    return import_module(f"bench.{name}")


def _ready() -> list[str]:
    """All that need no download."""
    if is_fetched():
        return [*_BENCHMARKS]
    print(
        f"{', '.join(_BESIDE_ROCKETMQ)} are left out: they need the jars of Apache RocketMQ; "
        "`python -m bench broker` fetches them with Maven",
        file=sys.stderr,
    )
    return [name for name in _BENCHMARKS if name not in _BESIDE_ROCKETMQ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
