"""Sockets around the sans-IO protocol: who connects, what waits, when it is given up.

``server`` listens, ``client`` asks, ``connection`` is one peer of either and ``connections`` the table of
them; ``tls``, ``tls_gate`` and ``tls_layer`` are TLS, ``file_limit`` the open files. What decides is pure
and beside them: ``outstanding``, ``replies``, ``watch``, ``held``, ``line_budget``.
"""

from tanist.remoting.client import RemotingClient
from tanist.remoting.connection import Connection, Express, Handler
from tanist.remoting.server import RemotingServer, bind_port, stop_listening
from tanist.remoting.settings import ClientLimits, ServerLimits
from tanist.remoting.tls import ClientAuth, TlsMode, TlsSettings
from tanist.remoting.tls_layer import TlsLayer
from tanist.remoting.watch import CloseCause

__all__ = [
    "ClientAuth",
    "ClientLimits",
    "CloseCause",
    "Connection",
    "Express",
    "Handler",
    "RemotingClient",
    "RemotingServer",
    "ServerLimits",
    "TlsLayer",
    "TlsMode",
    "TlsSettings",
    "bind_port",
    "stop_listening",
]
