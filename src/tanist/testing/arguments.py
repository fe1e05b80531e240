"""What an embedded broker is told, checked before anything starts. Pure."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tanist.broker import BrokerSettings
from tanist.broker.names import check_topic_name
from tanist.config import parse_settings
from tanist.errors import ConfigError, ResponseError
from tanist.ha.settings import HaSettings
from tanist.model.topics import TopicConfig
from tanist.remoting import ServerLimits, TlsMode, TlsSettings
from tanist.store import StoreSettings
from tanist.store.store import MAX_QUEUE_ID

_SOURCE = "EmbeddedBroker"

_DEFAULTS = {
    "brokerName": "embedded",
    "defaultTopicQueueNums": "4",
    # Files are made at their full size. These are enough for a test, and a disk or a memory file
    # system hardly notices them.
    "mappedFileSizeCommitLog": str(8 << 20),
    "mappedFileSizeConsumeQueue": str(20 * 4096),
    "mappedFileSizeTimerLog": str(1 << 20),
    "maxHashSlotNum": "4096",
    "maxIndexNum": "16384",
}

_DECIDED = {
    "listenPort": "the argument port",
    "storePathRootDir": "the argument store",
    "namesrvAddr": "the attribute namesrv: an embedded broker brings its name server along",
    "bindAddress": "the attribute address: an embedded broker serves this machine alone",
    "brokerIP1": "the attribute address: an embedded broker serves this machine alone",
    "brokerIP2": "the attribute address: an embedded broker serves this machine alone",
}
"""Keys that others would contradict, and what to use in their place."""


@dataclass(frozen=True, slots=True)
class CheckedSettings:
    """What a broker is made with, but for the addresses, which are known when it starts."""

    broker: BrokerSettings
    store: StoreSettings
    limits: ServerLimits
    tls: TlsSettings
    ha: HaSettings
    unknown: frozenset[str]
    """Keys that no setting has."""


def check_settings(given: Mapping[str, object], *, port: int) -> CheckedSettings:
    """Read settings as a config file's are read. Raises ConfigError for a wrong one."""
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("settings", given, "a mapping of keys to values, both text", _SOURCE)
    for key, value in given.items():
        if key in _DECIDED:
            raise ConfigError(key, value, _DECIDED[key], _SOURCE)
        if not isinstance(value, str):
            raise ConfigError(key, value, f"text, as in a config file: {str(value).lower()!r}", _SOURCE)
    raw = _DEFAULTS | {"listenPort": str(port)} | {key: str(value) for key, value in given.items()}
    with naming_port():
        checked = CheckedSettings(
            *parse_settings(
                raw, BrokerSettings, StoreSettings, ServerLimits, TlsSettings, HaSettings, source=_SOURCE
            )
        )
    if checked.tls.tls_mode is TlsMode.ENFORCING and not checked.tls.tls_enable:
        # The broker could not register, and no topic would have a route.
        remedy = "tlsEnable=true with it: the broker is a client of its name server, which enforces TLS too"
        raise ConfigError("tlsMode", checked.tls.tls_mode.value, remedy, _SOURCE)
    return checked


def check_topics(given: Mapping[str, int] | Iterable[str], settings: BrokerSettings) -> list[TopicConfig]:
    """The topics to make, from names or from names with their number of queues."""
    if isinstance(given, str):
        raise ConfigError("topics", given, f"a list of names, [{given!r}]", _SOURCE)
    if not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError("topics", given, "a list of names, or a mapping to numbers of queues", _SOURCE)
    counts = dict.fromkeys(given, settings.default_topic_queue_nums)
    if counts and settings.is_slave:
        raise ConfigError("topics", given, "none for a slave, whose topics come from its master", _SOURCE)
    if isinstance(given, Mapping):
        counts = cast("Mapping[str, int]", given)
    return [_topic(name, count) for name, count in counts.items()]


def check_store(given: object) -> Path | None:
    """The folder for the messages, if one is given."""
    if given is None:
        return None
    if not isinstance(given, str | Path) or not str(given).strip():
        raise ConfigError("store", given, "a folder", _SOURCE)
    return Path(given)


@contextmanager
def naming_port() -> Generator[None]:
    """Errors about the broker's port name the argument, not the key that stands for it."""
    try:
        yield
    except ConfigError as error:
        if error.key != "listenPort":
            raise
        raise ConfigError("port", error.value, error.allowed, _SOURCE) from error


def _topic(name: object, queue_count: object) -> TopicConfig:
    if not isinstance(name, str):
        raise ConfigError("topics", name, "names, as text", _SOURCE)
    try:
        check_topic_name(name)
    except ResponseError as refusal:
        raise ConfigError("topics", name, f"a topic's name: {refusal.remark}", _SOURCE) from refusal
    if type(queue_count) is not int or not 1 <= queue_count <= MAX_QUEUE_ID:
        raise ConfigError("topics", {name: queue_count}, f"1 to {MAX_QUEUE_ID} queues", _SOURCE)
    return TopicConfig(topic_name=name, read_queue_count=queue_count, write_queue_count=queue_count)
