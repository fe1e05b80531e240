"""The files that hold the rules: where they are, when they change, and what stands in them now.

As in RocketMQ these are ``conf/plain_acl.yml`` in its home and every ``.yml`` or ``.yaml`` below ``conf/acl``
there. ``aclConfigPath`` names another file or folder instead.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from tanist.broker.acl.plain_acl import MAX_FILE_BYTES, parse_plain_acl
from tanist.broker.acl.rules import AccessRules, join_rules, make_rules
from tanist.broker.settings import BrokerSettings
from tanist.errors import ConfigError, UnreadableConfig

_log = logging.getLogger(__name__)

_SUFFIXES = frozenset({".yml", ".yaml"})
_FORMAT = "a file like RocketMQ's plain_acl.yml"

_Stamp: TypeAlias = dict[Path, tuple[int, int, int, int]]
"""What tells one state of the files from another: inode, size and times of change, also of its rights."""


class AclFiles:
    """The rules' files. They are read when one of them is not what it was."""

    def __init__(self, settings: BrokerSettings) -> None:
        """Raises ConfigError if nothing says where they are."""
        if settings.acl_config_path:
            self._places = (Path(settings.acl_config_path),)
        elif settings.rocketmq_home:
            conf = Path(settings.rocketmq_home) / "conf"
            self._places = (conf / "acl", conf / "plain_acl.yml")
        else:
            raise ConfigError("aclConfigPath", "", f"{_FORMAT}, or set rocketmqHome: aclEnable is true")
        self._stamp: _Stamp | None = None

    def load_changed(self) -> AccessRules | None:
        """The rules as they are now; None if no file has changed since the last call.

        Raises ConfigError that names the file at fault. One that makes no sense is told once: the next time
        it is as if nothing had changed. One that can not be read is tried every time.
        """
        # Taken before the files are read: what changes meanwhile is seen the next time.
        stamp = self._look()
        if stamp == self._stamp:
            return None
        self._stamp = None
        texts = {path: _read_file(path) for path in stamp}
        self._stamp = stamp
        found = [rules for path, text in texts.items() if (rules := _rules_in(path, text)) is not None]
        if not found:
            places = " or ".join(map(str, self._places))
            raise UnreadableConfig(
                places, "there is no account and no address", f"{_FORMAT} or aclEnable=false"
            )
        rules = join_rules(found)
        _log.info("access rules read files=%d accounts=%d", len(stamp), len(rules.accounts))
        if rules.repeated:
            _log.warning(
                "access keys with several accounts, of which the first counts access_keys=%s",
                ",".join(sorted(rules.repeated)),
            )
        return rules

    def _look(self) -> _Stamp:
        stamp: _Stamp = {}
        for path in self._paths():
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise UnreadableConfig(path, error.strerror or str(error), _FORMAT) from error
            stamp[path] = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        return stamp

    def _paths(self) -> Iterator[Path]:
        """Those of a folder in the order of their names and before the single one, as in RocketMQ."""
        for place in self._places:
            if place.is_dir():
                yield from sorted(path for path in place.rglob("*") if _is_meant(path.relative_to(place)))
            else:
                yield place


def _is_meant(path: Path) -> bool:
    """Whether a file of the folder holds rules. Hidden ones are copies that editors and mounts keep."""
    return path.suffix in _SUFFIXES and not any(part.startswith(".") for part in path.parts)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UnreadableConfig(path, error.strerror or str(error), _FORMAT) from error


def _rules_in(path: Path, text: bytes) -> AccessRules | None:
    """One file's. An empty one is passed over: RocketMQ makes one itself beside those of its folder."""
    try:
        entries = parse_plain_acl(text)
        return None if entries is None else make_rules(entries)
    except ValueError as error:
        raise UnreadableConfig(path, str(error), _FORMAT) from error
