"""What a proxy in front says of who asks: believed of proxies that are named, and of nobody else.

Such a proxy ends TLS and passes the request on. ``X-Forwarded-Proto`` makes the session's cookie Secure,
and ``X-Forwarded-For`` is the address that the limit on logins counts and the audit log names. Of both it
is the last entry, which is the one that the proxy itself added.
"""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from tanist.model.host import is_address

_SCHEMES = frozenset({"http", "https"})


class BehindProxy:
    """Reads the proxy's headers if it is one of those that are trusted."""

    def __init__(self, app: ASGIApp, trusted: Collection[str]) -> None:
        self._app = app
        self._trusted = frozenset(trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        if scope["type"] == "http" and client is not None and client[0] in self._trusted:
            headers = Headers(scope=scope)
            scheme = _last(headers, "x-forwarded-proto").lower()
            if scheme in _SCHEMES:
                scope["scheme"] = scheme
            address = _last(headers, "x-forwarded-for")
            if is_address(address):
                scope["client"] = (address, 0)
        await self._app(scope, receive, send)


def _last(headers: Headers, name: str) -> str:
    """The last entry of the last line of this name: a proxy may add a line of its own to those that came."""
    return (headers.getlist(name) or [""])[-1].rpartition(",")[2].strip()
