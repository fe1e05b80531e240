"""The lean client, as benchmarks use it."""

import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from bench.lean_client import Load
from bench.processes import own_process

BODY_BYTES = 1024
_LONGEST_MS = 60_000


class LeanClient:
    """A process with the lean client. It ends with the block."""

    def __init__(self, home: Path) -> None:
        self._process = own_process("bench.lean_client", home)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)

    def send(
        self,
        address: str,
        *,
        connections: int,
        duration_ms: int = _LONGEST_MS,
        most: int = sys.maxsize,
        batch: int = 1,
        topic: str = "Bench",
        kind: str = "remoting",
        body_bytes: int = BODY_BYTES,
        rate: float = 0.0,
    ) -> Load:
        """Send messages, one at a time on each connection, for a time or until there are enough; so many a
        second, or as fast as it goes."""
        answer = self._process.do(
            "send",
            address=address,
            kind=kind,
            topic=topic,
            bodyBytes=body_bytes,
            connections=connections,
            durationMs=duration_ms,
            most=most,
            batch=batch,
            rate=rate,
        )
        load = msgspec.convert(answer, Load)
        if load.failures:
            print(
                f"{address}: {load.failures} sends failed, the first with: {load.first_failure}",
                file=sys.stderr,
            )
        return load
