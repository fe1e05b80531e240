"""``python -m bench [NAME ...]``: run the benchmarks named, or all of them, and print one table."""

import sys
from collections.abc import Callable

from bench import frames, log, queues
from bench.table import Row, print_rows

_BENCHMARKS: dict[str, Callable[[], list[Row]]] = {"frames": frames.run, "log": log.run, "queues": queues.run}


def main(names: list[str]) -> int:
    unknown = set(names) - set(_BENCHMARKS)
    if unknown:
        print(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(_BENCHMARKS)}", file=sys.stderr
        )
        return 2
    rows: list[Row] = []
    for name in names or _BENCHMARKS:
        print(f"running {name} …", file=sys.stderr)
        rows += _BENCHMARKS[name]()
    print_rows(rows)
    return 0 if all(row.is_met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
