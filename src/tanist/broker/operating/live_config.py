"""The settings of a broker as they are now: some can be changed while it runs.

A change is made whole or not at all, and in this order: every value is checked, the config file is
written if there is one, the new settings are shown, and then whoever needs to know is told. What those
then can not do is told to who asked, and done when the same is asked again.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from tanist.broker.operating.config_file import ConfigFile
from tanist.broker.settings import UPDATABLE_KEYS, BrokerSettings
from tanist.config import parse_settings, to_properties
from tanist.errors import ConfigError, MQError, ResponseError
from tanist.model.data_version import DataVersion
from tanist.model.names import shown
from tanist.protocol.codes import ResponseCode
from tanist.store import StoreSettings

_S = TypeVar("_S", bound=msgspec.Struct)

_SOURCE = "an update over the wire"
_MAX_VALUE_CHARS = 4_096
_NOT_ON_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class LiveConfig:
    """What one broker runs with. ``fixed`` are groups of settings of which none can be changed."""

    def __init__(
        self,
        broker: BrokerSettings,
        store: StoreSettings,
        *fixed: msgspec.Struct,
        file: ConfigFile | None = None,
    ) -> None:
        self.broker = broker
        self.store = store
        self.data_version = DataVersion()
        self._fixed = fixed
        self._file = file
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        """Have ``listener`` called after every change, also of the same to the same. It may raise OSError."""
        self._listeners.append(listener)

    def properties(self) -> dict[str, str]:
        """Every key with its value as text; of a secret only that it is set."""
        return to_properties(self.broker, self.store, *self._fixed)

    def update(self, changes: Mapping[str, str], *, now_ms: int) -> None:
        """Change all of these. Raises ResponseError, and then nothing has changed, if one can not be.

        It is raised too if somebody who was told failed, and says so. The others have been told then.
        """
        self._check_keys(changes)
        _check_values(changes)
        try:
            broker = _changed(self.broker, changes)
            store = _changed(self.store, changes)
            if self._file is not None:
                self._file.change(changes)
        except ConfigError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"nothing is changed: {error}") from error
        self.broker, self.store = broker, store
        self.data_version = self.data_version.bumped(now_ms=now_ms)
        failures = list(filter(None, map(_failure, self._listeners)))
        if failures:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"the settings are changed, but not all of it is done: {'; '.join(failures)}. "
                "Ask for the same again",
            )

    def _check_keys(self, changes: Mapping[str, str]) -> None:
        locked = sorted(self.broker.locked_keys.intersection(changes))
        if locked:
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"{_listed(locked)}: configBlackList keeps it from being changed",
            )
        unknown = sorted(changes.keys() - self.properties().keys())
        if unknown:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"{_listed(unknown)}: this broker has no such setting; nothing is changed",
            )
        fixed = sorted(changes.keys() - UPDATABLE_KEYS)
        if fixed:
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"{_listed(fixed)} can not be changed while the broker runs; nothing is changed. "
                f"Only {', '.join(sorted(UPDATABLE_KEYS))} can be",
            )


def _listed(keys: list[str]) -> str:
    return shown(", ".join(keys))


def _check_values(changes: Mapping[str, str]) -> None:
    """Refuse what would make the config file, or the answer to who reads the settings, hard to read back."""
    for key, value in changes.items():
        if len(value) > _MAX_VALUE_CHARS or _NOT_ON_A_LINE.search(value):
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"nothing is changed: {key}={shown(value)!r} is too long or has control characters; "
                f"use up to {_MAX_VALUE_CHARS} characters on one line",
            )


def _failure(listener: Callable[[], None]) -> str | None:
    """Tell a listener of a change: why it failed, or None."""
    try:
        listener()
    except (MQError, OSError) as error:
        return str(error)
    return None


def _changed(settings: _S, changes: Mapping[str, str]) -> _S:
    """The settings with those of the changes that are theirs."""
    names = {
        field.encode_name: field.name
        for field in msgspec.structs.fields(settings)
        if field.encode_name in changes
    }
    if not names:
        return settings
    parsed, _ = parse_settings(changes, type(settings), source=_SOURCE)
    return msgspec.structs.replace(settings, **{name: getattr(parsed, name) for name in names.values()})
