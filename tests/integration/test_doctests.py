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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_does_what_it_says(example: doctest.DocTest) -> None:
    # In a thread of its own: some examples block.
    with EmbeddedBroker(topics={"OrderTopic": 4}) as broker:
        assert asyncio.run(run_examples(example, {"namesrv": broker.namesrv})) == []


def test_examples_are_found() -> None:
    assert any(example.name.endswith(".Message") for example in EXAMPLES)
