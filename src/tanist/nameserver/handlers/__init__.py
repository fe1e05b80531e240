"""Request code to function: what the name server answers. Any other code is refused by remoting."""

from functools import partial

from tanist.nameserver.handlers import brokers, kv, routes, settings
from tanist.nameserver.handlers.context import Context, Handle
from tanist.remoting import Handler

__all__ = ["HANDLERS", "Context", "bound_handlers"]

HANDLERS: dict[int, Handle] = {
    int(code): handle
    for family in (routes, brokers, kv, settings)
    for code, handle in family.HANDLERS.items()
}


def bound_handlers(context: Context) -> dict[int, Handler]:
    """The handlers at work on these tables."""
    return {code: partial(handle, context) for code, handle in HANDLERS.items()}
