"""The examples in the docstrings of the clients do what they say, against a broker."""

import asyncio
import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import tanist.client
import tanist.sync
import tanist.testing
from tanist.client import Consumer, Outcome, Producer, ReceivedMessage
from tanist.testing import EmbeddedBroker
from tests.support.doctests import examples_of, run_examples


def _modules(package: ModuleType) -> list[ModuleType]:
    found = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    return [package, *(importlib.import_module(module.name) for module in found)]


EXAMPLES = [
    example
    for package in (tanist.client, tanist.sync, tanist.testing)
    for module in _modules(package)
    for example in examples_of(module)
]


async def commit(_message: ReceivedMessage) -> Outcome:
    return Outcome.COMMIT


def commit_blocking(_message: ReceivedMessage) -> Outcome:
    return Outcome.COMMIT


async def run(example: doctest.DocTest, namesrv: str) -> list[str]:
    """Run an example with what it may take for granted: names, an open producer and an open consumer."""
    async with (
        Producer(group="orders", namesrv=namesrv, on_check=commit) as producer,
        Consumer(group="billing", namesrv=namesrv, topics={"OrderTopic": "*"}) as consumer,
    ):
        names = {"asyncio": asyncio, "namesrv": namesrv, "producer": producer, "consumer": consumer}
        return await run_examples(example, public_names(tanist.client) | names)


async def run_blocking(example: doctest.DocTest, namesrv: str) -> list[str]:
    """The same for an example of the clients that block."""
    with (
        tanist.sync.Producer(group="orders", namesrv=namesrv, on_check=commit_blocking) as producer,
        tanist.sync.Consumer(group="billing", namesrv=namesrv, topics={"OrderTopic": "*"}) as consumer,
    ):
        names = {"namesrv": namesrv, "producer": producer, "consumer": consumer}
        return await run_examples(example, public_names(tanist.sync) | names)


def public_names(package: ModuleType) -> dict[str, object]:
    return {name: getattr(package, name) for name in package.__all__}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_does_what_it_says(example: doctest.DocTest) -> None:
    run_it = run_blocking if example.name.startswith("tanist.sync") else run
    # In a thread of its own: some examples block.
    with EmbeddedBroker(topics={"OrderTopic": 4}) as broker:
        assert asyncio.run(run_it(example, broker.namesrv)) == []


@pytest.mark.parametrize(
    "name", ["Message", "Producer", "Producer.transaction", "Consumer", "Consumer.run", "EmbeddedBroker"]
)
def test_the_main_names_have_an_example(name: str) -> None:
    assert any(example.name.endswith(f".{name}") for example in EXAMPLES)
