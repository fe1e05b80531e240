"""Metrics over HTTP, as Prometheus asks for them."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry, Gauge

from tanist.errors import ConfigError
from tanist.metrics import serving_metrics


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


def test_metrics_are_served_at_their_path_alone_and_only_read() -> None:
    async def run() -> None:
        registry = CollectorRegistry()
        Gauge("played", "A figure.", registry=registry).set(3)
        async with serving_metrics(registry, "127.0.0.1", 0) as address:
            port = int(address.split(":")[2].split("/")[0])
            head, _, body = (await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4")
            assert f"Content-Length: {len(body)}".encode() in head
            assert b"\nplayed 3.0\n" in body
            assert b"process_resident_memory_bytes" in body
            assert (await ask(port, b"GET /other HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404")
            assert (await ask(port, b"POST /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405")
            assert (await ask(port, b"x" * 20_000)).startswith(b"HTTP/1.1 400")
            with pytest.raises(ConfigError, match="metricsPromExporterPort"):
                async with serving_metrics(registry, "127.0.0.1", port):
                    pass

    asyncio.run(run())
