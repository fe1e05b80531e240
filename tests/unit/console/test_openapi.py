"""REST as its document describes it: requests that Schemathesis makes up, and answers that it checks."""

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, Response
from schemathesis.specs.openapi import checks
from schemathesis.transport.wsgi import WSGI_TRANSPORT

from tanist.console.web.api import OPERATIONS, PREFIX
from tanist.console.web.openapi import Operation, describe
from tests.support.console_views import dead_master
from tests.support.console_web import Answer, Browser, PlayedConsole

_NAMES = ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
# Their types are only partly told.
_CHECKS: list[Any] = [getattr(checks, name) for name in _NAMES]
_SCHEMA: Any = schemathesis.openapi.from_dict(describe(PREFIX, OPERATIONS))
_IMPORTED_EARLY = WSGI_TRANSPORT
"""The first request imports it, which makes a tree of its source. CPython 3.11 fails at that if it collects
garbage meanwhile that has something to say, as other tests leave it."""
_EXAMPLES = 4
_SITE = "http://console.test"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_whatever_is_asked_is_answered_as_the_document_says(operation: Operation) -> None:
    described = _SCHEMA[operation.path][operation.method]

    @given(case=described.as_strategy())
    @settings(
        max_examples=_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    def asked(case: Case[Any]) -> None:
        base = _SITE if operation.is_open else f"{_SITE}{PREFIX}"
        made = requests.Request(**case.as_transport_kwargs(base_url=base)).prepare()
        answer = _ask(made)
        assert answer.status != 500
        response = Response(
            status_code=answer.status,
            headers={name: [value] for name, value in answer.headers.items()},
            content=answer.text.encode(),
            request=made,
            elapsed=0.0,
            verify=True,
        )
        case.validate_response(response, checks=_CHECKS)

    asked()


def _ask(made: requests.PreparedRequest) -> Answer:
    """What an operator gets who sends this."""

    async def visit(browser: Browser) -> Answer:
        await browser.log_in()
        body = made.body or b""
        raw = body.encode() if isinstance(body, str) else body
        assert isinstance(raw, bytes)
        headers = {"x-csrf-token": await browser.csrf()}
        return await browser.ask(made.method or "GET", made.path_url, raw, headers)

    return PlayedConsole(dead_master()).run(visit)
