"""The classes and functions of production that decide where a group goes on.

Tests put others in their place, each with one rule left out, to see that it is found.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tanist.broker.handlers.clients import ClientHandler
from tanist.broker.handlers.offsets import OffsetHandler
from tanist.broker.handlers.resets import ResetHandler
from tanist.broker.offsets import OffsetTable
from tanist.broker.resets.table import OrderTable, set_unsaved
from tanist.client.consuming.resets import Resets


@dataclass(frozen=True, slots=True)
class Machines:
    """What decides at a broker, and at a member."""

    order_table: type[OrderTable] = OrderTable
    set_unsaved: Callable[[OrderTable, OffsetTable], None] = set_unsaved
    offset_handler: type[OffsetHandler] = OffsetHandler
    client_handler: type[ClientHandler] = ClientHandler
    reset_handler: type[ResetHandler] = ResetHandler
    resets: type[Resets] = Resets


PRODUCTION = Machines()
