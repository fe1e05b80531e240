"""``python -m bench [NAME ...]``: run the benchmarks named, or all of them, and print one table.

Without a name those are left out that run beside Apache RocketMQ if its jars would have to be fetched.
"""

import sys
from collections.abc import Callable

from bench import broker, clients, embedded, frames, ha, log, queues, remoting
from bench.table import Row, print_rows
from tests.support.rocketmq.jars import is_fetched

_BENCHMARKS: dict[str, Callable[[], list[Row]]] = {
    "frames": frames.run,
    "log": log.run,
    "queues": queues.run,
    "remoting": remoting.run,
    "embedded": embedded.run,
    "broker": broker.run,
    "clients": clients.run,
    "clients-rocketmq": clients.run_at_rocketmq,
    "ha": ha.run,
}
_PARTS = ha.parts()
"""Of one of the above."""
_BESIDE_ROCKETMQ = ("broker", "clients", "clients-rocketmq", "ha")


def main(names: list[str]) -> int:
    known = {**_BENCHMARKS, **_PARTS}
    unknown = set(names) - set(known)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names or _ready():
        print(f"running {name} …", file=sys.stderr)
        rows += known[name]()
    print_rows(rows)
    return 0 if all(row.is_met is not False for row in rows) else 1


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
