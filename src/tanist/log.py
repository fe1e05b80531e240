"""Where the log lines of a process go, what they look like, and what may never stand in them.

A line is ``time level logger phrase key=value ...``. Whatever a peer or a file put into it, it stays one
line: control characters are written as escapes, and a traceback is indented below it. A secret that
the process was told to hide is masked in all of it.

By choice a line is an object of JSON: ``time``, ``level``, ``logger``, ``event`` (the line as people read
it), each ``key`` of it as it was logged, and ``traceback``. The event stands there whole, so nothing is lost
where a phrase does not follow the rule.
"""

import json
import logging
import logging.handlers
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from tanist.errors import ConfigError

MAX_LOG_FILE_BYTES = 64 << 20
KEPT_LOG_FILES = 10

_HIDDEN = "******"
_CONTROL_CHARACTERS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
_PLACE = re.compile(r"(?:(\w+)=)?%[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]")
_ESCAPES = {code: repr(chr(code))[1:-1] for code in _CONTROL_CHARACTERS}


class ProcessLog:
    """The log of this process, to standard error or to a file, from ``with`` to the end of its block."""

    def __init__(
        self,
        *,
        level: int,
        file: Path | None = None,
        max_file_bytes: int = MAX_LOG_FILE_BYTES,
        kept_files: int = KEPT_LOG_FILES,
        is_json: bool | None = None,
    ) -> None:
        """Open the log. A full file gets the suffix ``.1``, the one before ``.2``, and the oldest goes.

        ``is_json`` is whether lines are objects of JSON; None to leave that to the settings.
        """
        self._level = level
        self._formatter = _LineFormatter(is_json=is_json is True)
        self._is_told_format = is_json is not None
        self._handler: logging.Handler = _handler(file, max_file_bytes, kept_files)
        self._handler.setFormatter(self._formatter)
        self._level_before = logging.NOTSET

    def __enter__(self) -> Self:
        root = logging.getLogger()
        self._level_before = root.level
        root.addHandler(self._handler)
        root.setLevel(self._level)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        root = logging.getLogger()
        root.removeHandler(self._handler)
        root.setLevel(self._level_before)
        self._handler.close()

    def set_level(self, level: int) -> None:
        """Write lines of this level and above: a server tells more than a command does."""
        logging.getLogger().setLevel(level)

    def use_json_unless_told(self, *, is_json: bool) -> None:
        """Write lines so from now on, unless whoever started the process said how."""
        if not self._is_told_format:
            self._formatter.is_json = is_json

    def share(self) -> None:
        """Only append to the file from now on: another process writes it too, and begins new ones."""
        if not isinstance(self._handler, logging.handlers.RotatingFileHandler):
            return
        shared = logging.handlers.WatchedFileHandler(
            self._handler.baseFilename, encoding="utf-8", errors="backslashreplace", delay=True
        )
        shared.setFormatter(self._formatter)
        root = logging.getLogger()
        root.removeHandler(self._handler)
        self._handler.close()
        self._handler = shared
        root.addHandler(shared)

    def hide(self, *secrets: str) -> None:
        """Mask these values in every line from now on."""
        self._formatter.hide(secrets)


class ToldFailures:
    """What a log has been told of failures that are met again and again.

    Each is worth one line, and another one when its reason is another: whoever tries every few seconds
    would fill the log otherwise.
    """

    def __init__(self) -> None:
        self._reasons: dict[object, str] = {}

    def is_news(self, subject: object, reason: str) -> bool:
        """Note why something failed; whether that is to be told."""
        is_news = self._reasons.get(subject) != reason
        self._reasons[subject] = reason
        return is_news

    def is_over(self, subject: object) -> bool:
        """Note that something works; whether it had failed before."""
        return self._reasons.pop(subject, None) is not None


class _LineFormatter(logging.Formatter):
    """Makes a record one line without secrets."""

    def __init__(self, *, is_json: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self.is_json = is_json
        self._spellings: set[str] = set()
        self._secrets: re.Pattern[str] | None = None

    def hide(self, secrets: Iterable[str]) -> None:
        for secret in filter(None, secrets):
            self._spellings |= _spellings(secret)
        # The longer first, or of a secret that begins with another one the rest would be left.
        longest_first = sorted(self._spellings, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        """Local time with its distance from UTC, so that the logs of two machines can be compared."""
        return datetime.fromtimestamp(record.created, UTC).astimezone().isoformat(timespec="milliseconds")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return super().formatMessage(record).translate(_ESCAPES)

    def format(self, record: logging.LogRecord) -> str:
        """Mask at the very end, where arguments and tracebacks are part of the text."""
        if self.is_json:
            return self._masked(json.dumps(self._fields(record)))
        return self._masked(super().format(record)).replace("\n", "\n  ")

    def _masked(self, text: str) -> str:
        return text if self._secrets is None else self._secrets.sub(_HIDDEN, text)

    def _fields(self, record: logging.LogRecord) -> dict[str, object]:
        event = record.getMessage()
        fields: dict[str, object] = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "event": event,
        }
        for key, value in _keyed(record):
            fields.setdefault(key, value)
        if record.exc_info and record.exc_info[0] is not None:
            fields["traceback"] = self.formatException(record.exc_info)
        return fields


def _keyed(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    """Each ``key=%s`` of the phrase with what was logged there; a number stays one."""
    if not isinstance(record.msg, str) or not isinstance(record.args, tuple):
        return
    places = _PLACE.findall(record.msg)
    if len(places) != len(record.args):
        return
    for key, value in zip(places, record.args, strict=True):
        if key:
            yield key, value if isinstance(value, int | float | str | None) else str(value)


def _spellings(secret: str) -> set[str]:
    """The secret as it is, and as it looks inside a line, a ``repr`` or JSON."""
    return {
        secret,
        secret.translate(_ESCAPES),
        repr(secret)[1:-1],
        repr(secret.encode())[2:-1],
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    }


def _handler(file: Path | None, max_file_bytes: int, kept_files: int) -> logging.Handler:
    if file is None:
        return logging.StreamHandler(sys.stderr)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return logging.handlers.RotatingFileHandler(
            file, maxBytes=max_file_bytes, backupCount=kept_files, encoding="utf-8", errors="backslashreplace"
        )
    except OSError as error:
        raise ConfigError(
            "--log-file", str(file), f"a file that can be written ({error.strerror})"
        ) from error
