"""Every wrong argument of a consumer is told at the call, by its name."""

from pathlib import Path
from typing import Any

import pytest

from tanist.client import Averagely, Consumer, InvalidArgument
from tanist.client.consuming.consumer_arguments import check_handler, check_pull_count, check_queue
from tanist.client.received import ReceivedMessage


def make_consumer(**arguments: Any) -> Consumer:
    given: dict[str, Any] = {"group": "billing", "topics": {"OrderTopic": "*"}, **arguments}
    return Consumer(**given)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("group", ""),
        ("group", "two words"),
        ("group", "DEFAULT_CONSUMER"),
        ("group", 7),
        ("topics", {}),
        ("topics", "OrderTopic"),
        ("namesrv", "nowhere"),
        ("broadcasting", "yes"),
        ("orderly", 1),
        ("start", "LAST"),
        ("strategy", "AVG"),
        ("strategy", Averagely),
        ("prefetch_count", 0),
        ("prefetch_count", 1.5),
        ("prefetch_count", True),
        ("prefetch_bytes", -1),
        ("prefetch_bytes", "64 MiB"),
        ("max_retries", -1),
        ("max_retries", "16"),
        ("timeout_s", 0),
        ("credentials", "key"),
        ("instance", ""),
        ("offsets_dir", 7),
        ("offsets_dir", "somewhere"),
        ("trace", "yes"),
    ],
)
def test_a_wrong_argument_is_named(argument: str, value: object) -> None:
    with pytest.raises(InvalidArgument) as refused:
        make_consumer(**{argument: value})
    assert refused.value.argument == argument


def test_a_folder_for_offsets_is_for_broadcasting_only(tmp_path: Path) -> None:
    make_consumer(broadcasting=True, offsets_dir=tmp_path)
    with pytest.raises(InvalidArgument, match="unless broadcasting is True"):
        make_consumer(offsets_dir=tmp_path)


@pytest.mark.parametrize("handler", [print, None, "handle", bytes.decode])
def test_a_handler_is_an_async_function(handler: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_handler(handler, 16)
    assert refused.value.argument == "handler"


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, "16", True])
def test_a_concurrency_is_a_number_of_handlers(concurrency: Any) -> None:
    async def handle(_message: ReceivedMessage) -> None: ...

    with pytest.raises(InvalidArgument) as refused:
        check_handler(handle, concurrency)
    assert refused.value.argument == "concurrency"


def test_an_object_with_an_async_call_is_a_handler() -> None:
    class Handler:
        async def __call__(self, message: ReceivedMessage) -> None: ...

    handler = Handler()
    assert check_handler(handler, 1) is handler


def test_what_calls_are_given_is_checked_too() -> None:
    with pytest.raises(InvalidArgument, match="queue="):
        check_queue("OrderTopic")
    for count in (0, 2000, 1.0):
        with pytest.raises(InvalidArgument, match="max_count="):
            check_pull_count(count)
