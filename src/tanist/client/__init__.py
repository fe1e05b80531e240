"""Clients in asyncio: producers and consumers that work with Tanist and with RocketMQ alike.

``session`` is what both have (``wire`` asks brokers, ``route_keeper`` keeps routes, ``heartbeats`` tells
brokers who we are). What decides is pure and beside them: ``routes``, ``backoff``, ``message``, ``checks``.
The same names without asyncio are in ``tanist.sync``.
"""

from tanist.client.errors import ClientClosed, InvalidArgument, NoRoute, SendFailed
from tanist.client.message import Message, Receipt, SendStatus
from tanist.client.producer import Producer
from tanist.client.settings import Credentials
from tanist.client.telemetry import extract_context, inject_context
from tanist.remoting.tls import TlsSettings

__all__ = [
    "ClientClosed",
    "Credentials",
    "InvalidArgument",
    "Message",
    "NoRoute",
    "Producer",
    "Receipt",
    "SendFailed",
    "SendStatus",
    "TlsSettings",
    "extract_context",
    "inject_context",
]
