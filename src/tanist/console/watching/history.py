"""Figures over the last minutes, for charts. Pure: one row a look, and a bound on rows and columns."""

from collections import deque

import msgspec

from tanist.console.watching.snapshot import BrokerLook, Snapshot

KEPT_ROWS = 300
MAX_COLUMNS = 64
IN, OUT = "in", "out"


class History(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Columns of figures, all as long as the column of times; null where a figure was not known."""

    times_s: list[float]
    columns: dict[str, list[float | None]]


class Recorder:
    """Keeps a row of figures of each look."""

    def __init__(self, *, kept_rows: int = KEPT_ROWS) -> None:
        self._rows: deque[tuple[float, dict[str, float]]] = deque(maxlen=kept_rows)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        self._rows.append((snapshot.taken_ms / 1000, figures(snapshot)))

    def history(self) -> History:
        """Everything that is kept."""
        names = sorted({name for _, row in self._rows for name in row})[:MAX_COLUMNS]
        return History(
            times_s=[at_s for at_s, _ in self._rows],
            columns={name: [row.get(name) for _, row in self._rows] for name in names},
        )


def figures(snapshot: Snapshot) -> dict[str, float]:
    """The row of one look: messages a second, and the lag of each slave in bytes and milliseconds."""
    row = {
        IN: sum(rate_of(look, "putTps") for look in snapshot.brokers if look.is_master),
        OUT: sum(rate_of(look, "getTransferredTps") for look in snapshot.brokers),
    }
    for look in snapshot.brokers:
        if look.ha is None or not look.ha.is_master or not look.is_up:
            continue
        for slave in look.ha.slaves:
            name = slave.addr if slave.broker_id is None else str(slave.broker_id)
            row[f"lag bytes {look.name} {name}"] = slave.lag_bytes
            if slave.lag_ms is not None:
                row[f"lag ms {look.name} {name}"] = slave.lag_ms
    return row


def rate_of(look: BrokerLook, figure: str) -> float:
    """A figure of ``brokerStatus`` that is told for several spans: that of the shortest, 10 seconds."""
    first, *_ = look.runtime.get(figure, "").split() or ["0"]
    try:
        return max(0.0, float(first))
    except ValueError:
        return 0.0
