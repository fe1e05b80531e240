"""How a terminal shows the state of replication."""

from datetime import UTC, datetime

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from tanist.admin.parallel import Told
from tanist.protocol.bodies.replication import ControlledView, HAClientView, HARefusedView, HARuntimeInfo

_UNKNOWN = "unknown"
_SHOWN_REFUSALS = 5
_UNBOUNDED_COLUMNS = 1_000
_COLUMNS = ("slave", "id", "acked", "lag", "lag ms", "KB/s", "in step", "from", "ack", "counts")


def to_value(told: Told[HARuntimeInfo]) -> dict[str, object]:
    """All that the broker tells, with its address, for JSON."""
    failure = None if told.failure is None else str(told.failure)
    return {"brokerAddr": told.address, "haStatus": told.value, "failure": failure}


def print_status(console: Console, told: Told[HARuntimeInfo]) -> None:
    """Who it is, and its slaves or its link."""
    status = told.value
    if status is None:
        console.print(f"{told.address} does not answer: {told.failure}", markup=False, highlight=False)
        return
    who = f"{status.broker_name} id {status.broker_id} " if status.broker_name is not None else ""
    role = status.role or ("master" if status.is_master else "slave")
    console.print(f"{who}{role} at {told.address}", markup=False, highlight=False)
    if status.controlled is not None:
        _print_controlled(console, status.controlled, is_master=status.is_master)
    if status.is_master:
        _print_slaves(console, status)
    else:
        _print_link(console, status.client)
    for damage in status.damage:
        console.print(f"  damaged: {damage}", style="bold red", markup=False, highlight=False, soft_wrap=True)


def _print_controlled(console: Console, controlled: ControlledView, *, is_master: bool) -> None:
    """How it stands with its controllers, and why it does not take messages if it does not."""
    who = f"replica {shown(controlled.replica_id)}, {controlled.role} of epoch {controlled.epoch}"
    lines = [f"{who}, {controlled.state}, controller {controlled.controller or _UNKNOWN}"]
    if is_master:
        members, counted = controlled.sync_state_set, controlled.counted
        asked = "" if counted == members else f", being changed: {_ids(counted)} are waited for"
        lines.append(
            f"sync state set {_ids(members)} of epoch {shown(controlled.set_epoch)}{asked}, "
            f"confirmed to {controlled.confirmed_to}, lease {shown(controlled.lease_ms)} ms"
        )
    else:
        lines.append(f"confirmed to {controlled.confirmed_to}")
    lines += [f"why: {reason}" for reason in controlled.reasons]
    for line in lines:
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def _ids(broker_ids: list[int]) -> str:
    return "{" + ", ".join(map(str, broker_ids)) + "}"


def _print_slaves(console: Console, status: HARuntimeInfo) -> None:
    proof = f", authentication {status.authentication}" if status.authentication else ""
    in_step = f"{status.in_sync_slave_count} of {len(status.slaves)} slaves in step"
    console.print(f"  log end {status.log_end}, {in_step}{proof}", markup=False, highlight=False)
    if status.slaves:
        table = Table(*_COLUMNS, box=None)
        for slave in status.slaves:
            table.add_row(
                # Brackets are no markup here.
                Text(slave.addr),
                shown(slave.broker_id),
                str(slave.acked_to),
                str(slave.lag_bytes),
                shown(slave.lag_ms),
                f"{slave.bytes_per_second / 1024:.1f}",
                "yes" if slave.is_in_sync else "no",
                str(slave.sent_from),
                slave.ack_kind or "received",
                shown(slave.counts),
            )
        print_whole(console, table)
    else:
        console.print("  no slave is connected, so the lag is unknown", highlight=False)
    for kind, count in status.refused_counts.items():
        console.print(f"  turned away: {count} x {kind}", markup=False, highlight=False)
    for peer in _last_of_each(status.refused)[-_SHOWN_REFUSALS:]:
        line = f"    {time_of(peer.at_ms)} {peer.addr} {peer.reason} (received {peer.received or 'nothing'})"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _last_of_each(refused: list[HARefusedView]) -> list[HARefusedView]:
    """Who comes again and again for the same reason is shown once, as it was last."""
    last: dict[tuple[str, str], HARefusedView] = {}
    for peer in refused:
        key = (peer.addr.rpartition(":")[0], peer.reason)
        last.pop(key, None)
        last[key] = peer
    return list(last.values())


def print_whole(console: Console, table: Table) -> None:
    """A line that is too long for the terminal goes on in the next: an address that is cut tells nothing."""
    unbounded = console.options.update(max_width=_UNBOUNDED_COLUMNS)
    table.width = Measurement.get(console, unbounded, table).maximum
    console.print(table, soft_wrap=True)


def _print_link(console: Console, client: HAClientView) -> None:
    for name, value in (
        ("master", client.master_addr or _UNKNOWN),
        ("state", "refused by the master" if client.is_refused else client.state),
        ("why", client.reason),
        ("log end", client.log_end),
        ("master's log end", shown(client.master_log_end)),
        ("lag", shown(client.lag_bytes)),
        ("KB/s", f"{client.bytes_per_second / 1024:.1f}"),
        ("last read", time_of(client.last_read_timestamp_ms)),
        ("last write", time_of(client.last_write_timestamp_ms)),
        ("old logs kept", client.aside_count or None),
        ("last rebuild failed", client.rebuild_failure),
    ):
        if value is not None:
            console.print(f"  {name}: {value}", markup=False, highlight=False, soft_wrap=True)


def shown(value: object) -> str:
    match value:
        case None:
            return _UNKNOWN
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)


def time_of(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds") if at_ms else "never"
