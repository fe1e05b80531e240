r"""The ``.properties`` format, read as ``java.util.Properties`` reads it.

A line is ``key=value``, ``key:value`` or ``key value``; ``#`` and ``!`` begin a comment; a backslash at
the end of a line goes on with the next one; ``\n``, ``\u00e9`` and the like are escapes; of a key that
is named twice the last value counts. Blanks at the end of a value belong to it.

One thing differs on purpose: Java takes the bytes for ISO-8859-1, we for UTF-8, which every editor
writes today. The two agree on ASCII; a file that is not UTF-8 is refused and not misread.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tanist.errors import UnreadableConfig

MAX_FILE_BYTES = 1024 * 1024

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_NATURAL_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_COMMENT = ("#", "!")
_SETTING = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAMED_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_IN_VALUES = re.compile(r"[\\\t\n\r\f]|^ ")
_ESCAPED_IN_KEYS = re.compile(r"[\\\t\n\r\f =:#!]")
_ESCAPE_NAMES = {character: name for name, character in _NAMED_ESCAPES.items()}


def load_properties(path: Path) -> dict[str, str]:
    """Read a config file: its keys and values as text."""
    return parse_properties(read_text(path), source=path)


def read_text(path: Path) -> str:
    """Read a config file as it stands there."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UnreadableConfig(path, error.strerror or str(error), "a file that can be read") from error
    if len(raw) > MAX_FILE_BYTES:
        raise UnreadableConfig(path, "the file is too long", f"at most {MAX_FILE_BYTES} bytes")
    try:
        # Some editors put a byte order mark first, which would hide in the name of the first key.
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"line {line} holds the byte 0x{raw[error.start]:02x}, which is not UTF-8"
        raise UnreadableConfig(path, found, r"UTF-8, or an escape such as \u00e9") from error


def parse_properties(text: str, *, source: object) -> dict[str, str]:
    """Read the text of a config file. ``source`` is what an error names as the place."""
    properties: dict[str, str] = {}
    for lines, line in logical_lines(text):
        setting = _SETTING.fullmatch(line)
        assert setting is not None  # The last group takes whatever the others leave.
        try:
            key, value = _unescaped(setting["key"]), _unescaped(setting["value"])
        except ValueError as error:
            found = f"line {lines.stop} holds {error}"
            raise UnreadableConfig(source, found, r"\uXXXX with the four digits of a character") from error
        properties[key] = value
    return properties


def encode_property(key: str, value: str) -> str:
    """Write one setting as a line, which ``parse_properties`` reads back as it was."""
    return f"{_escaped(key, _ESCAPED_IN_KEYS)}={_escaped(value, _ESCAPED_IN_VALUES)}"


def logical_lines(text: str) -> Iterator[tuple[range, str]]:
    """Yield what is neither blank nor a comment, continued lines as one, and which lines of the text it is.

    The first line is number 0 here.
    """
    line, first, number = "", 0, 0
    for number, natural_line in enumerate(_LINE_END.split(text)):
        part = natural_line.lstrip(_BLANKS)
        if not line:
            first = number
            if not part or part.startswith(_COMMENT):
                continue
        line += part
        if (len(part) - len(part.rstrip("\\"))) % 2:
            line = line[:-1]
            continue
        yield range(first, number + 1), line
        line = ""
    if line:
        yield range(first, number + 1), line


def natural_lines(text: str) -> list[str]:
    """The lines of a text as they stand there, each with its end."""
    return _NATURAL_LINE.findall(text)


def _unescaped(text: str) -> str:
    """Undo the escapes. Java counts in UTF-16, so two escapes may stand for one character."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_character, text)
    if not _SURROGATE.search(plain):
        return plain
    try:
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise ValueError("half of a character") from error


def _character(escape: re.Match[str]) -> str:
    name = escape[1]
    if name == "u":
        raise ValueError(r"\u without four hexadecimal digits")
    return chr(int(name[1:], 16)) if len(name) > 1 else _NAMED_ESCAPES.get(name, name)


def _escaped(text: str, where: re.Pattern[str]) -> str:
    return where.sub(lambda found: "\\" + _ESCAPE_NAMES.get(found[0], found[0]), text)
