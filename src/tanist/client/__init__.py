"""Clients in asyncio: producers and consumers that work with Tanist and with RocketMQ alike.

``session`` is what both have (``wire`` asks brokers, ``route_keeper`` keeps routes, ``heartbeats`` tells
brokers who we are). What decides is pure and beside them: ``routes``, ``backoff``, ``message``, ``checks``.
The same names without asyncio are in ``tanist.sync``.
"""

from tanist.client.allocation import (
    AllocationStrategy,
    Averagely,
    AveragelyByCircle,
    ByMachineRoom,
    ConsistentHash,
    MachineRoomNearby,
    Sticky,
)
from tanist.client.consumer import Consumer
from tanist.client.errors import (
    ClientClosed,
    CommitFailed,
    CommitInDoubt,
    InvalidArgument,
    NoReply,
    NoRoute,
    SendFailed,
    TransactionNotBegun,
)
from tanist.client.message import Message, Receipt, SendStatus
from tanist.client.producer import Producer
from tanist.client.received import ReceivedMessage
from tanist.client.retrying import RetryLater
from tanist.client.settings import Credentials
from tanist.client.subscriptions import Sql, Start
from tanist.client.telemetry import extract_context, inject_context
from tanist.client.transaction_ends import Outcome
from tanist.model.route import MessageQueue
from tanist.remoting.tls import TlsSettings

__all__ = [
    "AllocationStrategy",
    "Averagely",
    "AveragelyByCircle",
    "ByMachineRoom",
    "ClientClosed",
    "CommitFailed",
    "CommitInDoubt",
    "ConsistentHash",
    "Consumer",
    "Credentials",
    "InvalidArgument",
    "MachineRoomNearby",
    "Message",
    "MessageQueue",
    "NoReply",
    "NoRoute",
    "Outcome",
    "Producer",
    "Receipt",
    "ReceivedMessage",
    "RetryLater",
    "SendFailed",
    "SendStatus",
    "Sql",
    "Start",
    "Sticky",
    "TlsSettings",
    "TransactionNotBegun",
    "extract_context",
    "inject_context",
]
