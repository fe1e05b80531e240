"""Writes docs/reference/metrics.md from the code; ``--check`` says whether it is current."""

import sys
from collections.abc import Iterator
from pathlib import Path

from tanist.metrics.names import ALL, MetricName, Process
from tanist.metrics.sampling import MAX_SERIES

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "metrics.md"

_TITLES = {
    None: "Every process",
    Process.BROKER: "Broker",
    Process.NAME_SERVER: "Name server",
    Process.CONTROLLER: "Controller",
    Process.CONSOLE: "Console",
}


def lines() -> Iterator[str]:
    """The page."""
    yield from (
        "# Metrics",
        "",
        "<!-- Written by scripts/reference_metrics.py from src/tanist/metrics/names.py. -->",
        "",
        "A process serves them as Prometheus reads them, at `/metrics` of `metricsPromExporterHost` and",
        "`metricsPromExporterPort`, if its config says `metricsExporterType=PROM`; the console with",
        "`--metrics HOST:PORT`. Nothing is counted for them, but for the ends of transactions and what",
        "timers take in and give out: what is known anyway is looked up then.",
        "",
        "Names that begin with `rocketmq_`, and a controller's without prefix, are RocketMQ 5's, as its",
        "processes export them; its page leaves the units out. Differences: there is no `message_type`",
        "label, since messages are counted by queue; halves and messages that a timer holds are counted",
        "for all topics together, and have no label `topic`; a slave does not tell what came in, nor of",
        "transactions and timers what a master alone carries out; of what has a",
        f"label for topics, groups or addresses the {MAX_SERIES} series with the greatest values are told,",
        "and `tanist_metrics_left_out` says how many are not.",
    )
    for process, title in _TITLES.items():
        yield from ("", f"## {title}")
        if process is not None:
            yield from ("", f"Labels of each: {', '.join(f'`{label}`' for label in process.labels)}.")
        else:
            yield from ("", "Beside these, `process_*` of the process itself: memory, processor, open files.")
        yield from ("", "| metric | type | labels | meaning |", "| --- | --- | --- | --- |")
        yield from (
            _row(name) for name in sorted(ALL, key=lambda each: each.exported_name) if name.process is process
        )


def text() -> str:
    return "\n".join(lines()) + "\n"


def _row(name: MetricName) -> str:
    kind = "counter" if name.is_counter else "gauge"
    labels = ", ".join(f"`{label}`" for label in name.labels)
    return f"| `{name.exported_name}` | {kind} | {labels} | {name.meaning} |"


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(PAGE.read_text(encoding="utf-8") != text())
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text(), encoding="utf-8")
