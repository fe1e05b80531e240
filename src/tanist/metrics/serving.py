"""Metrics over HTTP, from the same loop that serves everybody else, one metric a turn.

A web server is not needed for one page, and a thread would read tables that change meanwhile.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from tanist.errors import ConfigError

_log = logging.getLogger(__name__)

PATHS = frozenset({"/metrics", "/"})
"""Where they are; RocketMQ's brokers serve them at both too."""
_MAX_HEAD_BYTES = 8192
_MAX_SCRAPES = 8
_PATIENCE_S = 5.0


@asynccontextmanager
async def serving_metrics(registry: CollectorRegistry, host: str, port: int) -> AsyncGenerator[str]:
    """Answer scrapes while the block lasts; the address at which. Raises ConfigError if the port is taken."""
    scrapes = _Scrapes(registry)
    try:
        server = await asyncio.start_server(scrapes.answer, host, port, limit=_MAX_HEAD_BYTES)
    except OSError as error:
        allowed = f"a free port, or 0 for one that the system chooses ({error.strerror or error})"
        raise ConfigError("metricsPromExporterPort", f"{host}:{port}", allowed) from error
    ProcessCollector(registry=registry)
    try:
        real_port = server.sockets[0].getsockname()[1]
        address = f"http://{f'[{host}]' if ':' in host else host}:{real_port}/metrics"
        _log.info("metrics served at=%s", address)
        yield address
    finally:
        server.close()


async def metrics_text(registry: CollectorRegistry) -> bytes:
    """All metrics, made in turns: others are served between two of them."""
    parts: list[bytes] = []
    for metric in registry.collect():
        parts.append(generate_latest(_One(metric)))  # pyright: ignore[reportArgumentType]
        await asyncio.sleep(0)
    return b"".join(parts)


@dataclass(slots=True)
class _One:
    """What ``generate_latest`` takes for a registry."""

    metric: Metric

    def collect(self) -> Iterable[Metric]:
        yield self.metric


class _Scrapes:
    """Answers one request a connection, and few at a time."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._count = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        try:
            with contextlib.closing(writer), contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    writer.write(await self._reply(reader))
                    await writer.drain()
        finally:
            self._count -= 1

    async def _reply(self, reader: asyncio.StreamReader) -> bytes:
        if self._count > _MAX_SCRAPES:
            return _response("503 Service Unavailable", b"too many scrapes at a time\n")
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return _response("400 Bad Request", b"this is no request for metrics\n")
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0].decode(errors="replace")
        if method != b"GET":
            return _response("405 Method Not Allowed", b"use GET\n")
        if path not in PATHS:
            return _response("404 Not Found", b"metrics are at /metrics\n")
        return _response("200 OK", await metrics_text(self._registry))


def _response(status: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE_PLAIN_0_0_4}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
