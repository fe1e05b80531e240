"""Writes docs/reference/config.md from the code; ``--check`` says whether it is current.

What a key means stands below its field in the code. What RocketMQ's default is stands in a file beside the
page, which was read from its jars.
"""

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec
from msgspec import inspect as types
from settings_texts import field_texts

from tanist.broker import BrokerSettings
from tanist.cli.console import console
from tanist.client import Consumer, Producer
from tanist.config import ProcessSettings, Secret
from tanist.config.describe import text_of
from tanist.controller import ControllerSettings
from tanist.ha.settings import HaSettings
from tanist.nameserver import NameServerSettings
from tanist.remoting import ClientLimits, ServerLimits, TlsSettings
from tanist.store import StoreSettings

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
PAGE, STOCK = FOLDER / "config.md", FOLDER / "rocketmq_defaults.json"

_SHARED = (ServerLimits, TlsSettings, ProcessSettings)
_PROCESSES: tuple[tuple[str, str, tuple[type[msgspec.Struct], ...]], ...] = (
    ("Broker", "broker", (BrokerSettings, StoreSettings, HaSettings)),
    ("Name server", "namesrv", (NameServerSettings, ClientLimits)),
    ("Controller", "controller", (ControllerSettings, ClientLimits)),
    ("Every process", "server", _SHARED),
)
_OF_THIS_MACHINE = {
    "brokerName": "the machine's name",
    "rocketmqHome": "the environment's `ROCKETMQ_HOME`",
    "storePathRootDir": "`~/store`",
}


def lines() -> Iterator[str]:
    """The page."""
    stock: dict[str, dict[str, str | None]] = json.loads(STOCK.read_text(encoding="utf-8"))
    yield from (
        "# Settings",
        "",
        "<!-- Written by scripts/reference_config.py from the settings in the code. -->",
        "",
        "Every key of each process, with its default and what it means. `tanist broker -p` prints those that",
        "a broker runs with. A default of RocketMQ 5.3.3 is named where it is another; keys that RocketMQ",
        "does not have are marked *ours*. The format of the files: [configuration.md](../configuration.md).",
    )
    for title, name, kinds in _PROCESSES:
        yield from ("", f"## {title}", "", "| key | type | default | RocketMQ's | meaning |")
        yield "| --- | --- | --- | --- | --- |"
        rows = [row for kind in kinds for row in _rows(kind, stock[name])]
        yield from sorted(set(rows), key=str.lower)
    yield from _console()
    yield from (
        "",
        "## Clients",
        "",
        "What programs give when they make one; [clients.md](../clients.md) says more.",
    )
    for kind in (Producer, Consumer):
        yield from _arguments(kind)


def text() -> str:
    return "\n".join(lines()) + "\n"


def _rows(kind: type[msgspec.Struct], stock: dict[str, str | None]) -> Iterator[str]:
    texts = field_texts(kind)
    for field in msgspec.structs.fields(kind):
        key = field.encode_name
        default = _OF_THIS_MACHINE.get(key) or _code(_default(field))
        theirs = "*ours*" if key not in stock else _difference(stock[key], _default(field))
        yield f"| `{key}` | {_type(field)} | {default} | {theirs} | {_cell(texts[field.name])} |"


def _default(field: msgspec.structs.FieldInfo) -> str:
    return text_of(field.default) if field.default is not msgspec.NODEFAULT else ""


def _difference(theirs: str | None, ours: str) -> str:
    """Nothing too where RocketMQ's follows from the machine, or from elsewhere than its config file."""
    return "" if theirs is None or theirs == ours else _code(theirs) or "empty"


def _type(field: msgspec.structs.FieldInfo) -> str:
    if field.type == Secret:
        return "secret"
    match types.type_info(field.type):
        case types.BoolType():
            return "true or false"
        case types.IntType():
            return "number"
        case types.EnumType(cls=cls):
            return ", ".join(f"`{member.value}`" for member in cls)
        case _:
            return "text"


def _console() -> Iterator[str]:
    yield from (
        "",
        "## Console",
        "",
        "Options of `tanist console`.",
        "",
        "| option | default | meaning |",
        "| --- | --- | --- |",
    )
    for option in console.params:
        if isinstance(option, click.Option) and not option.hidden and option.help:
            names = ", ".join(f"`{name}`" for name in option.opts)
            default = option.default if isinstance(option.default, str) else ""
            yield f"| {names} | {_code(default)} | {_cell(option.help)} |"


def _arguments(kind: Callable[..., object]) -> Iterator[str]:
    yield from ("", f"### {kind.__name__}", "", "| argument | default |", "| --- | --- |")
    for argument in inspect.signature(kind).parameters.values():
        is_needed = argument.default is inspect.Parameter.empty
        yield f"| `{argument.name}` | {'needed' if is_needed else _code(repr(argument.default))} |"


def _code(value: str) -> str:
    return f"`{value}`" if value else ""


def _cell(value: str) -> str:
    return value.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(PAGE.read_text(encoding="utf-8") != text())
    PAGE.write_text(text(), encoding="utf-8")
