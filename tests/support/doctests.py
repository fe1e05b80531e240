"""Runs the examples of docstrings as `python -m asyncio` would: with `await` at the top level.

Plain doctest cannot await. What is printed, shown and raised is compared as doctest compares it.
"""

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import sys
import traceback
from collections.abc import Coroutine, Mapping
from types import ModuleType
from typing import Any, cast

_FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
_TIMEOUT_S = 60.0


def examples_of(module: ModuleType) -> list[doctest.DocTest]:
    """Every docstring of the module that has an example."""
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]


async def run_examples(test: doctest.DocTest, names: Mapping[str, object]) -> list[str]:
    """What went otherwise than the docstring says; nothing if all is as it says."""
    checker = doctest.OutputChecker()
    scope: dict[str, Any] = {**test.globs, **names}
    faults: list[str] = []
    for example in test.examples:
        found = await _run(example, scope)
        expected = example.want if example.exc_msg is None else example.exc_msg
        flags = _FLAGS | sum(flag for flag, is_on in example.options.items() if is_on)
        if example.exc_msg is not None:
            expected, found = expected.split(":")[0] + "\n", found.split(":")[0] + "\n"
        if not checker.check_output(expected, found, flags):
            faults.append(checker.output_difference(example, found, flags))
    return faults


async def _run(example: doctest.Example, scope: dict[str, Any]) -> str:
    """What the example prints and shows, or the last line of what it raises."""
    printed = io.StringIO()
    code = compile(example.source, "<example>", "single", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    hook = sys.displayhook
    try:
        sys.displayhook = sys.__displayhook__
        with contextlib.redirect_stdout(printed):
            value = eval(code, scope)
            if inspect.iscoroutine(value):
                async with asyncio.timeout(_TIMEOUT_S):
                    await cast("Coroutine[Any, Any, object]", value)
    except Exception as error:
        return traceback.format_exception_only(error)[-1]
    finally:
        sys.displayhook = hook
    return printed.getvalue()
