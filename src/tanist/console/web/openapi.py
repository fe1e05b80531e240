"""The OpenAPI document, made from the types that REST answers with. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tanist import __version__

_PATH_PARAMETER = re.compile(r"\{(\w+)\}")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a question has no answer."""

    error: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked for."""

    path: str
    summary: str
    answer: type[msgspec.Struct] | None
    """Nothing if it is a file, of the kinds that ``files`` tells."""
    method: str = "get"
    body: type[msgspec.Struct] | None = None
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters that may be given, and what they mean."""
    is_for_operators: bool = False
    files: Sequence[str] = ()
    is_open: bool = False
    """Whether it is asked without a login, and beside the prefix that the others have."""


def describe(prefix: str, operations: Sequence[Operation]) -> dict[str, Any]:
    """The document, version 3.1."""
    kinds = [operation.answer for operation in operations if operation.answer is not None]
    kinds += [operation.body for operation in operations if operation.body is not None]
    schemas, components = msgspec.json.schema_components(
        [*kinds, Problem], ref_template="#/components/schemas/{name}"
    )
    by_kind = dict(zip([*kinds, Problem], schemas, strict=True))
    paths: dict[str, Any] = {}
    for operation in operations:
        path = paths.setdefault(operation.path, {})
        if operation.is_open:
            path |= {"servers": [{"url": "/"}], operation.method: _open_operation(operation, by_kind)}
        else:
            path[operation.method] = _operation(operation, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tanist console",
            "version": __version__,
            "description": "What the pages of the console show. Needs the session of a browser, or a name "
            "and a password (HTTP basic). A change from a browser's session needs X-CSRF-Token too.",
        },
        "servers": [{"url": prefix}],
        "security": [{"basic": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "tanist_session"},
            },
        },
    }


def _open_operation(operation: Operation, schemas: Mapping[type, Any]) -> dict[str, Any]:
    """For whoever keeps the console running: well, or not."""
    assert operation.answer is not None
    content = _content(schemas[operation.answer])
    return {
        "summary": operation.summary,
        "operationId": _id_of(operation),
        "security": [],
        "responses": {
            "200": {"description": "It is so", "content": content},
            "503": {"description": "It is not so, and why", "content": content},
        },
    }


def _operation(operation: Operation, schemas: Mapping[type, Any]) -> dict[str, Any]:
    names: list[str] = _PATH_PARAMETER.findall(operation.path)
    problem = _content(schemas[Problem])
    answers: dict[str, Any] = {
        "200": {"description": "The answer", "content": _answer(operation, schemas)},
        "401": {"description": "Nobody is logged in", "content": problem},
        "404": {"description": "It is not there", "content": problem},
        "502": {"description": "A broker did not do it; others may have", "content": problem},
        "503": {"description": "The cluster was not looked at yet", "content": problem},
    }
    if operation.is_for_operators:
        answers["403"] = {"description": "For operators", "content": problem}
    described: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": _id_of(operation),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
        + [
            {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
            for name, text in operation.query.items()
        ],
        "responses": answers,
    }
    if operation.query or operation.body is not None:
        answers["400"] = {"description": "What was sent makes no sense", "content": problem}
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _content(schemas[operation.body])}
        answers["409"] = {"description": "Refused; nothing was changed", "content": problem}
    return described


def _id_of(operation: Operation) -> str:
    return operation.method + re.sub(r"\W+", "_", operation.path)


def _answer(operation: Operation, schemas: Mapping[type, Any]) -> dict[str, Any]:
    if operation.answer is not None:
        return _content(schemas[operation.answer])
    return {media: {"schema": {"type": "string"}} for media in operation.files}


def _content(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
