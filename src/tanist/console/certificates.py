"""Results of Spark jobs and certificates of audits: files in a folder, shown and checked.

They are JSON, or pages of HTML that a job has drawn, which are handed out as they are.

A certificate is checked by ``tanist audit verify`` in a process of its own, which reads the store of this
machine that the certificate names, and no other. It may read gigabytes, so there is one at a time.
"""

import asyncio
import os
import re
import stat
import sys
from pathlib import Path

import msgspec

from tanist.clock import Clock
from tanist.console.errors import Refused, Unknown
from tanist.console.views.base import Level, View

_NAME = re.compile(r"[\w][\w.-]{0,127}\.(?:json|html)")
_PAGE = ".html"
_MAX_FILES = 200
_MAX_BYTES = 1 << 20
_MAX_PAGE_BYTES = 8 << 20
_MAX_FIELDS = 40
_MAX_VALUE_CHARS = 200
_VERIFY_S = 120.0

_Version = tuple[int, int]
"""When a file was written, in ns, and its size: others are told apart by it."""


class Verdict(View, frozen=True, kw_only=True):
    """What came of checking a store against a certificate."""

    store: str
    holds: bool
    reason: str
    at_ms: int


class ResultRow(View, frozen=True, kw_only=True):
    """One file: a certificate, the result of another job, or one that can not be read."""

    name: str
    kind: str
    """``certificate``, ``result``, ``page`` or ``unreadable``."""
    level: Level
    written_ms: int
    size_bytes: int
    fields: dict[str, str]
    stores: list[str]
    """Of a certificate: the logs that were found equal."""
    verdicts: list[Verdict]
    """What checks since the start of this console found."""


class Results(View, frozen=True, kw_only=True):
    """The folder, the newest file first."""

    folder: str
    results: list[ResultRow]
    left_out_count: int


class _Certificate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What ``tanist spark audit --certificate`` writes, as far as it is shown."""

    log_start: int
    log_end: int
    block_bytes: int
    root: str
    made_at: str
    stores: list[str]


class _Told(msgspec.Struct, frozen=True):
    holds: bool
    reason: str


class CertificateDesk:
    """The files of one folder."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._verdicts: dict[str, tuple[_Version, dict[str, Verdict]]] = {}
        self._turn = asyncio.Lock()

    def list(self) -> Results:
        """What is there now. Blocks for a moment; not for the event loop."""
        paths = [path for path in self._folder.glob("*") if _NAME.fullmatch(path.name)]
        found = sorted(
            ((known.st_mtime, path) for path in paths if (known := _stat(path)) is not None), reverse=True
        )
        rows = [row for _, path in found[:_MAX_FILES] if (row := self._row(path)) is not None]
        return Results(folder=str(self._folder), results=rows, left_out_count=max(0, len(found) - _MAX_FILES))

    def find(self, name: str) -> ResultRow:
        """Raises Unknown if there is no such file."""
        path = self._folder / name
        row = self._row(path) if _NAME.fullmatch(name) else None
        if row is None:
            raise Unknown(f"there is no file {name[:128]} among the results")
        return row

    def page(self, name: str) -> bytes:
        """A page that a job has drawn. Blocks for a moment. Raises Unknown, or Refused if it is too large."""
        row = self.find(name)
        if row.kind != "page":
            raise Unknown(f"{name[:128]} is no page")
        if row.size_bytes > _MAX_PAGE_BYTES:
            raise Refused(f"{name} has more than {_MAX_PAGE_BYTES} bytes; open the file itself")
        try:
            return (self._folder / name).read_bytes()
        except OSError as error:
            raise Refused(f"{name} can not be read: {error.strerror}") from error

    async def verify(self, name: str, store: str) -> str:
        """Check a store that the certificate names; what was found, in words. Raises Refused."""
        row = await asyncio.to_thread(self.find, name)
        if row.kind != "certificate":
            raise Refused(f"{name} is no certificate")
        if store not in row.stores:
            raise Refused(f"{name} does not name the store {store[:_MAX_VALUE_CHARS]}")
        if self._turn.locked():
            raise Refused("another certificate is being checked; wait until that is done")
        path = self._folder / name
        async with self._turn:
            before = await asyncio.to_thread(_version, path)
            told = await _run_verify(path, store)
            version = await asyncio.to_thread(_version, path)
        if version is None or version != before:
            raise Refused(f"{name} was written anew while it was checked; check it again")
        verdict = Verdict(store=store, holds=told.holds, reason=told.reason, at_ms=self._clock.now_ms())
        verdicts = self._verdicts_of(name, version)
        self._verdicts[name] = (version, {**verdicts, store: verdict})
        return f"{store} {'holds' if told.holds else 'DOES NOT HOLD'}: {told.reason}"

    def _verdicts_of(self, name: str, version: _Version) -> dict[str, Verdict]:
        """What was found of the file as it is now: another one of the same name was not checked."""
        checked, verdicts = self._verdicts.get(name, (None, dict[str, Verdict]()))
        return verdicts if checked == version else {}

    def _row(self, path: Path) -> ResultRow | None:
        """What a file is, or None if it is gone."""
        found = _stat(path)
        if found is None:
            return None
        kind, level, fields, stores = "unreadable", Level.WARN, dict[str, str](), list[str]()
        verdicts = list(self._verdicts_of(path.name, (found.st_mtime_ns, found.st_size)).values())
        if path.suffix == _PAGE:
            kind, level = "page", Level.GOOD
        elif found.st_size > _MAX_BYTES:
            fields["problem"] = f"it has more than {_MAX_BYTES} bytes"
        else:
            try:
                kind, fields, stores = _read(path.read_bytes())
                level = Level.GOOD
            except (msgspec.MsgspecError, UnicodeDecodeError, OSError, RecursionError) as error:
                fields["problem"] = str(error)
        if any(not verdict.holds for verdict in verdicts) or fields.get("isEqual") == "false":
            level = Level.BAD
        return ResultRow(
            name=path.name,
            kind=kind,
            level=level,
            written_ms=int(found.st_mtime * 1000),
            size_bytes=found.st_size,
            fields=fields,
            stores=stores,
            verdicts=verdicts,
        )


def _stat(path: Path) -> os.stat_result | None:
    """Of a file, or None if none is there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _version(path: Path) -> _Version | None:
    found = _stat(path)
    return None if found is None else (found.st_mtime_ns, found.st_size)


def _read(data: bytes) -> tuple[str, dict[str, str], list[str]]:
    """What a file is, its fields as text, and the stores of a certificate."""
    table = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    fields = {
        name[:_MAX_VALUE_CHARS]: _shown(bytes(raw).decode())
        for name, raw in list(table.items())[:_MAX_FIELDS]
    }
    try:
        certificate = msgspec.json.decode(data, type=_Certificate)
    except msgspec.ValidationError:
        return "result", fields, []
    return "certificate", fields, certificate.stores


def _shown(raw: str) -> str:
    text = msgspec.json.decode(raw) if raw.startswith('"') else raw
    return text if len(text) <= _MAX_VALUE_CHARS else text[: _MAX_VALUE_CHARS - 1] + "…"


async def _run_verify(certificate: Path, store: str) -> _Told:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tanist.cli", "audit", "verify", str(certificate), store, "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_VERIFY_S):
            told, problem = await process.communicate()
    except TimeoutError as error:
        raise Refused(
            f"it takes longer than {_VERIFY_S:.0f} s; run tanist audit verify on the machine itself"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        return msgspec.json.decode(told, type=_Told)
    except msgspec.MsgspecError as error:
        lines = problem.decode("utf-8", "replace").strip().splitlines()
        raise Refused(lines[-1] if lines else "tanist audit verify said nothing") from error
