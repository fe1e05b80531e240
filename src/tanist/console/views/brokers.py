"""Brokers: what each is, does and is set to."""

import re
from functools import cache

from tanist.broker import BrokerSettings
from tanist.broker.settings import UPDATABLE_KEYS
from tanist.config import HIDDEN, to_properties
from tanist.console.views.base import Level, View
from tanist.console.watching.history import rate_of
from tanist.console.watching.snapshot import BrokerLook, Snapshot
from tanist.ha.settings import HaSettings
from tanist.remoting import ServerLimits, TlsSettings
from tanist.store import StoreSettings

_SECRET = re.compile("secret|password|credential|accesskey|token|authenticationuser", re.IGNORECASE)
"""Keys of secrets. RocketMQ's brokers tell theirs to whoever may ask for their settings."""


class BrokerRow(View, frozen=True, kw_only=True):
    """One broker in the list."""

    address: str
    name: str
    broker_id: int
    cluster: str
    role: str
    """``MASTER`` or ``SLAVE``, as it says itself or, while it does not answer, as it was last."""
    level: Level
    state: str
    """How it is, in words."""
    version: str | None = None
    in_per_second: float = 0.0
    out_per_second: float = 0.0
    log_end: int | None = None
    disk_used_ratio: float | None = None
    started_ms: int | None = None


class Brokers(View, frozen=True, kw_only=True):
    """All brokers that are listed or were a while ago."""

    taken_ms: int
    brokers: list[BrokerRow]


class Setting(View, frozen=True, kw_only=True):
    """One setting; ``default`` is null for a key that only RocketMQ has."""

    key: str
    value: str
    default: str | None
    is_changed: bool
    is_editable: bool
    """Whether it can be changed here; the broker decides whether it is."""


class BrokerPage(View, frozen=True, kw_only=True):
    """One broker."""

    taken_ms: int
    broker: BrokerRow
    settings: list[Setting]
    figures: dict[str, str]
    """What it measures, by RocketMQ's names."""


def brokers_view(snapshot: Snapshot) -> Brokers:
    return Brokers(taken_ms=snapshot.taken_ms, brokers=[broker_row(look) for look in snapshot.brokers])


def broker_page(snapshot: Snapshot, address: str) -> BrokerPage | None:
    """None if no such broker is known."""
    look = snapshot.find(address)
    if look is None:
        return None
    return BrokerPage(
        taken_ms=snapshot.taken_ms,
        broker=broker_row(look),
        settings=settings_of(look.tables.config or {}),
        figures=dict(sorted(look.runtime.items())),
    )


def broker_row(look: BrokerLook) -> BrokerRow:
    level, state = broker_state(look)
    return BrokerRow(
        address=look.address,
        name=look.name,
        broker_id=look.broker_id,
        cluster=look.place.cluster,
        role="MASTER" if look.is_master else "SLAVE",
        level=level,
        state=state,
        version=look.runtime.get("brokerVersionDesc"),
        in_per_second=rate_of(look, "putTps") if look.is_master else 0.0,
        out_per_second=rate_of(look, "getTransferredTps"),
        log_end=_number(look, "commitLogMaxOffset"),
        disk_used_ratio=_ratio(look, "commitLogDiskRatio"),
        started_ms=_number(look, "bootTimestamp"),
    )


def broker_state(look: BrokerLook) -> tuple[Level, str]:
    """How a broker is, in words."""
    if not look.is_up:
        return Level.BAD, f"does not answer: {look.failure}"
    if look.is_read_slave:
        return Level.WARN, "is read in its master's place"
    status = look.slave_consume
    if status is not None and look.is_master and not status.is_readable:
        return Level.BAD, f"serves no consumers: {status.reason}"
    if not look.place.is_registered and look.is_master:
        return Level.WARN, "answers, and is not in the name server's table"
    return _replication_state(look) or (Level.GOOD, "serves" if look.is_master else "follows its master")


def _replication_state(look: BrokerLook) -> tuple[Level, str] | None:
    """What is not as it should be between it and its controller or its master; None if nothing."""
    if look.ha is None:
        return None
    if look.ha.controlled is not None and look.ha.controlled.reasons:
        return Level.WARN, "; ".join(look.ha.controlled.reasons)
    if not look.ha.is_master and look.ha.client.reason is not None:
        return Level.BAD if look.ha.client.is_refused else Level.WARN, look.ha.client.reason
    return None


def settings_of(config: dict[str, str]) -> list[Setting]:
    """All settings, those first that are not as they are by default."""
    defaults = _defaults()
    settings = [
        Setting(
            key=key,
            value=HIDDEN if value and _SECRET.search(key) else value,
            default=defaults.get(key),
            is_changed=key in defaults and value != defaults[key],
            is_editable=key in UPDATABLE_KEYS and not _SECRET.search(key),
        )
        for key, value in config.items()
    ]
    return sorted(settings, key=lambda setting: (not setting.is_changed, setting.key))


@cache
def _defaults() -> dict[str, str]:
    return to_properties(BrokerSettings(), StoreSettings(), ServerLimits(), TlsSettings(), HaSettings())


def _number(look: BrokerLook, figure: str) -> int | None:
    text = look.runtime.get(figure, "")
    return int(text) if text.isdecimal() else None


def _ratio(look: BrokerLook, figure: str) -> float | None:
    try:
        return float(look.runtime[figure])
    except (KeyError, ValueError):
        return None
