"""What docs/clients.md shows can be done as it stands there."""

import ast
import asyncio
import re
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

from tanist.testing import EmbeddedBroker

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
TOPICS = ["OrderTopic", "PriceTopic", "MetricTopic"]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMESRV = re.compile(r"(127\.0\.0\.1|mq\.example\.org):9876")
_LOOP_S = 2.0
"""Many examples go on for ever. They are cancelled, and must not have failed before."""


def blocks(namesrv: str) -> list[tuple[int, str]]:
    """The examples, each with the number of its first line."""
    text = PAGE.read_text(encoding="utf-8")
    found = [(text.count("\n", 0, match.start(1)), match[1]) for match in _BLOCK.finditer(text)]
    return [(line, _NAMESRV.sub(namesrv, block)) for line, block in found]


async def run(line: int, block: str, names: dict[str, Any]) -> None:
    tree = ast.increment_lineno(ast.parse(block), line)
    code = compile(tree, PAGE.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    limit = asyncio.timeout(_LOOP_S)
    try:
        async with limit:
            done = eval(code, names)
            if isawaitable(done):
                await done
    except TimeoutError:
        if not limit.expired():
            raise


async def do_nothing(*_: object) -> None:
    """Stands for what only the reader knows."""


@pytest.mark.takes(15)
def test_the_examples_of_the_page_run() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics=TOPICS) as broker:
            names: dict[str, Any] = {"bill": do_nothing, "pay": do_nothing, "is_paid": do_nothing}
            for line, block in blocks(broker.namesrv):
                if "tanist.sync" not in block:
                    await run(line, block, names)
            await names["test_what_is_sent_is_billed"]()

    asyncio.run(scenario())


def test_the_page_has_an_example_without_asyncio() -> None:
    (block,) = (block for _, block in blocks("") if "tanist.sync" in block)
    assert "await" not in block
    ast.parse(block)
