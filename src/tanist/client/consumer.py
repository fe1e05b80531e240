"""The consumer: what programs read messages with."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tanist.client.allocation import AllocationStrategy, Averagely
from tanist.client.broker_calls import BrokerCalls
from tanist.client.checks import check_number
from tanist.client.consumer_arguments import check_handler, check_offset, check_queue, make_membership
from tanist.client.errors import ClientClosed, CommitFailed, InvalidArgument, NoRoute
from tanist.client.fetching import Fetcher, Outcome
from tanist.client.handler_run import HandlerRun
from tanist.client.handling import Delivery, MessageHandler
from tanist.client.local_offsets import LocalOffsets
from tanist.client.message_iterator import LeftInHand, MessageIterator
from tanist.client.offsets import OffsetStore
from tanist.client.orders import Orders
from tanist.client.rebalancing import Rebalancer
from tanist.client.received import ReceivedMessage
from tanist.client.remote_offsets import RemoteOffsets
from tanist.client.retrying import RetryRules
from tanist.client.session import Session
from tanist.client.settings import (
    DEFAULT_NAMESRV,
    DEFAULT_TIMEOUT_S,
    Credentials,
    make_settings,
)
from tanist.client.subscriptions import Start, Topics, consume_from_where
from tanist.errors import MQError
