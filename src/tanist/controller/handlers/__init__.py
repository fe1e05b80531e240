"""Request code to function: what the controller answers. Any other code is refused by remoting."""

from functools import partial

from tanist.controller.handlers import groups, heartbeats, registry, status
from tanist.controller.handlers.context import Context, Handle
from tanist.remoting import Handler

__all__ = ["HANDLERS", "Context", "bound_handlers"]

HANDLERS: dict[int, Handle] = {
    int(code): handle
    for family in (groups, heartbeats, registry, status)
    for code, handle in family.HANDLERS.items()
}


def bound_handlers(context: Context) -> dict[int, Handler]:
    """The handlers at work on these tables."""
    return {code: partial(context.guard, handle) for code, handle in HANDLERS.items()}
