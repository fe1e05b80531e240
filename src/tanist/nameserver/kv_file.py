"""The key-value table on disk, RocketMQ's ``kvConfig.json``.

A change is visible, and is answered, once it is on disk: what an operator was told is kept survives a
crash, and nobody reads a value that does not. Changes that arrive while one is being written are
written together.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from tanist.errors import ConfigError, StoreError
from tanist.nameserver.kv_config import KVConfig
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.store.backed_file import BackedFile
from tanist.store.disk import Disk

MAX_PENDING_CHANGES = 1000
"""More changes than operators make while one is written; the ones beyond are refused."""

Change = Callable[[KVConfig], KVConfig]
Done = Callable[[Exception | None], None]

_log = logging.getLogger(__name__)


class KVFile:
    """The table that is on disk, and the changes on their way there."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self._path = path
        self._file = BackedFile(disk or Disk(), path)
        self._pending: list[tuple[Change, Done]] = []
        self._has_work = asyncio.Event()
        self._is_closing = False
        self.current = KVConfig()

    def load(self) -> None:
        """Read what is there. A file that is damaged, with its backup, stops the start."""
        try:
            self.current = self._file.load(_decode) or KVConfig()
        except OSError as error:
            remedy = f"a file that can be read ({error.strerror or error})"
            raise ConfigError("kvConfigPath", str(self._path), remedy) from error

    def submit(self, change: Change, done: Done) -> bool:
        """Make a change; ``done`` is told when it is on disk, or why not. False: no room, or it ends."""
        if self._is_closing or len(self._pending) >= MAX_PENDING_CHANGES:
            return False
        self._pending.append((change, done))
        self._has_work.set()
        return True

    async def run(self) -> None:
        """Write changes until ``close``; those that wait then are written first."""
        while self._pending or not self._is_closing:
            await self._has_work.wait()
            self._has_work.clear()
            batch, self._pending = self._pending, []
            failure = await self._write([change for change, _ in batch])
            for _, done in batch:
                done(failure)

    def close(self) -> None:
        """Let ``run`` come to its end."""
        self._is_closing = True
        self._has_work.set()

    async def _write(self, changes: list[Change]) -> Exception | None:
        changed = self.current
        for change in changes:
            changed = change(changed)
        if changed is self.current:
            return None
        # Sorted and laid out, so that a person can read it and two files can be compared.
        text = msgspec.json.format(encode_body(changed), indent=1)
        try:
            await asyncio.to_thread(self._file.save, text)
        except (StoreError, OSError) as error:
            _log.exception("kv config not written path=%s", self._path)
            return error
        self.current = changed
        return None


def _decode(data: bytes) -> KVConfig:
    return decode_java_json(data, KVConfig, is_trusted=True)
