"""Settings as text again: what a process runs with, for ``-p`` and for whoever asks over the wire."""

from collections.abc import Iterator
from enum import Enum

import msgspec

from tanist.config.properties import encode_property
from tanist.config.settings import HIDDEN, is_secret


def describe(*settings: msgspec.Struct) -> list[str]:
    """Every key with its value, sorted by key; a comment above names the default where that is another.

    The lines are a config file that gives the same settings. Only a secret is lost: it stands in a
    comment, for as a setting the stand-in would become the secret of whoever starts from these lines.
    """
    defaults = to_properties(*(type(group)() for group in settings))
    hidden = {field.encode_name for field, value in _values(*settings) if is_secret(field) and value}
    lines: list[str] = []
    for key, value in to_properties(*settings).items():
        if value != defaults[key]:
            lines.append(f"# default: {encode_property(key, defaults[key])}")
        line = encode_property(key, value)
        lines.append(f"# {line}" if key in hidden else line)
    return lines


def to_properties(*settings: msgspec.Struct) -> dict[str, str]:
    """Every key with its value as a file would name it, sorted by key; a secret that is set is hidden."""
    texts = {
        field.encode_name: HIDDEN if is_secret(field) and value else text_of(value)
        for field, value in _values(*settings)
    }
    return dict(sorted(texts.items()))


def secret_values(*settings: msgspec.Struct) -> list[str]:
    """The secrets that are set, for the log to keep out."""
    return [str(value) for field, value in _values(*settings) if is_secret(field) and value]


def _values(*settings: msgspec.Struct) -> Iterator[tuple[msgspec.structs.FieldInfo, object]]:
    for group in settings:
        for field in msgspec.structs.fields(group):
            yield field, getattr(group, field.name)


def text_of(value: object) -> str:
    """A value as it stands in a config file."""
    match value:
        case bool():
            return "true" if value else "false"
        case Enum():
            return str(value.value)
        case _:
            return str(value)
