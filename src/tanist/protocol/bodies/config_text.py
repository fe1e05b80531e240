"""Settings as text, ``key=value`` a line: the body that reads or changes a running process's config."""

from collections.abc import Mapping

from tanist.errors import LocalProtocolError, RemoteProtocolError

MAX_CONFIG_BYTES = 1024 * 1024


def encode_config(settings: Mapping[str, str]) -> bytes:
    """One line a setting. The format escapes nothing, so a line break in a value cannot be written."""
    for key, value in settings.items():
        if "\n" in key + value or "\r" in key + value or "=" in key:
            raise LocalProtocolError(f"the setting {key!r} does not fit on a line of its own")
    return "".join(f"{key}={value}\n" for key, value in settings.items()).encode()


def decode_config(body: bytes | memoryview) -> dict[str, str]:
    """The settings. Blank lines and comments are skipped; of a key named twice the last value counts."""
    if len(body) > MAX_CONFIG_BYTES:
        raise RemoteProtocolError(f"{len(body)} bytes of settings are over the limit of {MAX_CONFIG_BYTES}")
    try:
        text = bytes(body).decode()
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"settings that are not UTF-8: {error}") from error
    settings: dict[str, str] = {}
    for line in text.split("\n"):
        setting = line.strip()
        if not setting or setting.startswith(("#", "!")):
            continue
        key, separator, value = setting.partition("=")
        if not separator or not key.strip():
            raise RemoteProtocolError(f"a setting without a key or an equals sign: {setting[:80]!r}")
        settings[key.strip()] = value.strip()
    return settings
