"""What every handler of the name server works with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tanist.clock import Clock
from tanist.nameserver.kv_file import KVFile
from tanist.nameserver.replica_group import Action
from tanist.nameserver.route_table import RouteTable
from tanist.nameserver.settings import LiveSettings
from tanist.protocol import Command
from tanist.remoting import Connection, ServerLimits


@dataclass(frozen=True, slots=True)
class Context:
    """The tables, the settings, the time, and who carries actions out."""

    table: RouteTable
    kv: KVFile
    settings: LiveSettings
    limits: ServerLimits
    clock: Clock
    started_at_s: float
    carry_out: Callable[[list[Action]], None]


Handle: TypeAlias = Callable[[Context, Command, Connection], Command | None]
"""One request in, its answer out; None if the answer comes later."""
