"""Clients in asyncio: producers and consumers that work with Tanist and with RocketMQ alike.

``producer`` and ``consumer`` are what programs use, ``message`` and ``received`` what goes in and comes out.
Behind them: ``session`` (what both have), ``sending``, ``transactions``, ``requests``; ``consuming``,
``queues``, ``pulling``, ``offsets``; ``tracing``. The same names without asyncio are in ``tanist.sync``.
"""

from tanist.client.consumer import Consumer
from tanist.client.consuming.retrying import RetryLater
from tanist.client.consuming.subscriptions import Sql, Start
from tanist.client.errors import (
    ClientClosed,
    CommitFailed,
    CommitInDoubt,
    ConnectFailed,
    ConnectionLost,
    InvalidArgument,
    MQError,
    NoPermission,
    NoReply,
    NoRoute,
    RemotingError,
    ReplicaBehind,
    RequestTimeout,
    ResponseError,
    SendFailed,
    TooBusy,
    TopicNotFound,
    TransactionNotBegun,
)
from tanist.client.message import Message, Receipt, SendStatus
from tanist.client.producer import Producer
from tanist.client.queues.allocation import (
    AllocationStrategy,
    Averagely,
    AveragelyByCircle,
    ByMachineRoom,
    ConsistentHash,
    MachineRoomNearby,
    Sticky,
)
from tanist.client.received import ReceivedMessage
from tanist.client.settings import Credentials
from tanist.client.telemetry import extract_context, inject_context
from tanist.client.transactions.transaction_ends import Outcome
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
    "ConnectFailed",
    "ConnectionLost",
    "ConsistentHash",
    "Consumer",
    "Credentials",
    "InvalidArgument",
    "MQError",
    "MachineRoomNearby",
    "Message",
    "MessageQueue",
    "NoPermission",
    "NoReply",
    "NoRoute",
    "Outcome",
    "Producer",
    "Receipt",
    "ReceivedMessage",
    "RemotingError",
    "ReplicaBehind",
    "RequestTimeout",
    "ResponseError",
    "RetryLater",
    "SendFailed",
    "SendStatus",
    "Sql",
    "Start",
    "Sticky",
    "TlsSettings",
    "TooBusy",
    "TopicNotFound",
    "TransactionNotBegun",
    "extract_context",
    "inject_context",
]
