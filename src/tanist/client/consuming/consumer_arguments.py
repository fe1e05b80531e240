"""The arguments of a consumer and of its calls, checked where they are given. Pure."""

import inspect
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from tanist.client.checks import check_flag, check_group, check_number
from tanist.client.consuming.handling import MessageHandler
from tanist.client.consuming.membership import Membership
from tanist.client.consuming.retrying import RetryRules
from tanist.client.consuming.subscriptions import Start, Topics, check_start, make_subscriptions
from tanist.client.errors import InvalidArgument
from tanist.client.pulling.pull_pace import PullBounds
from tanist.client.queues.allocation import AllocationStrategy
from tanist.model.integers import INT64_MAX
from tanist.model.route import MessageQueue

DEFAULT_PREFETCH_COUNT = 1000
DEFAULT_PREFETCH_BYTES = 64 << 20
DEFAULT_CONCURRENCY = 16
MAX_PULL_COUNT = 1024
_DEFAULT_MAX_RETRIES = 16
_MAX_PREFETCH_COUNT = 1_000_000
_MAX_PREFETCH_BYTES = 1 << 40
_MAX_CONCURRENCY = 10_000
_MAX_RETRIES = 10_000


def make_membership(
    *,
    group: str,
    topics: Topics,
    broadcasting: bool,
    orderly: bool,
    start: Start | datetime,
    strategy: AllocationStrategy,
    prefetch_count: int,
    prefetch_bytes: int,
    sub_version: int,
) -> Membership:
    """What a consumer is to be, by its arguments. Raises InvalidArgument for what is wrong."""
    group = check_group(group)
    check_flag("broadcasting", broadcasting)
    check_flag("orderly", orderly)
    if isinstance(strategy, type) or not callable(getattr(strategy, "allocate", None)):
        raise InvalidArgument("strategy", strategy, "give an allocation strategy, such as Averagely()")
    _check_int("prefetch_count", prefetch_count, least=1, most=_MAX_PREFETCH_COUNT)
    _check_int("prefetch_bytes", prefetch_bytes, least=1, most=_MAX_PREFETCH_BYTES)
    return Membership(
        group=group,
        subscriptions=make_subscriptions(
            topics, group=group, is_broadcasting=broadcasting, sub_version=sub_version
        ),
        is_broadcasting=broadcasting,
        is_orderly=orderly,
        start=check_start(start),
        strategy=strategy,
        prefetch=PullBounds(count=prefetch_count, size_bytes=prefetch_bytes),
    )


def make_retry_rules(membership: Membership, max_retries: int | None) -> RetryRules:
    """How the consumer deals with failures. In order, a message is tried for ever unless told otherwise."""
    if max_retries is not None:
        _check_int("max_retries", max_retries, least=0, most=_MAX_RETRIES)
    elif not membership.is_orderly:
        max_retries = _DEFAULT_MAX_RETRIES
    return RetryRules(
        is_orderly=membership.is_orderly,
        is_broadcasting=membership.is_broadcasting,
        max_retries=max_retries,
    )


def check_offsets_dir(offsets_dir: object, *, is_broadcasting: bool) -> Path | None:
    """The folder for the offsets of a broadcasting consumer; None: where RocketMQ's clients have it."""
    if offsets_dir is None:
        return None
    if not isinstance(offsets_dir, str | Path) or not str(offsets_dir):
        raise InvalidArgument("offsets_dir", offsets_dir, "give a folder")
    if not is_broadcasting:
        raise InvalidArgument(
            "offsets_dir", offsets_dir, "brokers keep the offsets, unless broadcasting is True"
        )
    return Path(offsets_dir)


def check_queue(queue: object) -> MessageQueue:
    if not isinstance(queue, MessageQueue):
        raise InvalidArgument("queue", queue, "give a MessageQueue, such as one of consumer.assignment")
    return queue


def check_offset(offset: object) -> int:
    _check_int("offset", offset, least=0, most=INT64_MAX)
    return cast("int", offset)


def check_place(offset: object) -> int | datetime:
    """Where to seek to: an offset or a time."""
    if not isinstance(offset, datetime):
        return check_offset(offset)
    if offset.tzinfo is None:
        raise InvalidArgument("offset", offset, "give a datetime with a time zone")
    return offset


def check_pull_count(max_count: object) -> None:
    _check_int("max_count", max_count, least=1, most=MAX_PULL_COUNT)


def check_concurrency(concurrency: object) -> None:
    _check_int("concurrency", concurrency, least=1, most=_MAX_CONCURRENCY)


def check_handler(handler: Any, concurrency: object) -> MessageHandler:
    check_concurrency(concurrency)
    call = getattr(handler, "__call__", None)  # noqa: B004
    if not inspect.iscoroutinefunction(handler) and not inspect.iscoroutinefunction(call):
        raise InvalidArgument("handler", handler, "give an 'async def' function of one message")
    return handler


def _check_int(argument: str, value: object, *, least: int, most: int) -> None:
    check_number(argument, value, least=least, most=most)
    if not isinstance(value, int):
        raise InvalidArgument(argument, value, "give an int")
