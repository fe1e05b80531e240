"""The id that the controller gave this replica, as it is kept in files of RocketMQ's form.

brokerIdentity         cluster#brokerName#id
brokerIdentity-temp    cluster#brokerName#id#checkCode    an id that was asked for and may be ours

The second is written before the id is applied for: after a crash the same check code asks again and gets the
same id, and no id is used up. RocketMQ deletes and rewrites the files; here each is replaced as one step.
"""

from dataclasses import dataclass
from pathlib import Path

from tanist.broker.settings import BrokerSettings
from tanist.errors import ConfigError, ForeignFile
from tanist.model.integers import INT64_MAX
from tanist.store.disk import Disk

FIRST_ID = 1
"""The controller's ids begin here: 0 is how routes know a master."""
_FILE_NAME = "brokerIdentity"
_TEMP_SUFFIX = "-temp"
_SEPARATOR = "#"


@dataclass(frozen=True, slots=True)
class Identity:
    """One replica of one group."""

    cluster: str
    broker_name: str
    broker_id: int


@dataclass(frozen=True, slots=True)
class AppliedIdentity:
    """An id that this replica applies for. Who has the check code may ask again."""

    identity: Identity
    check_code: str
    """``address;millis``: nobody else has asked from this address in this millisecond."""


class IdentityFiles:
    """The two files of one broker. Raises ConfigError if a name can not stand in them."""

    def __init__(self, disk: Disk, settings: BrokerSettings) -> None:
        self._disk = disk
        self._cluster, self._broker_name = settings.broker_cluster_name, settings.broker_name
        for key, name in (("brokerClusterName", self._cluster), ("brokerName", self._broker_name)):
            if _SEPARATOR in name or "\n" in name:
                remedy = f"a name without {_SEPARATOR} and line ends: the file of the broker's id has them"
                raise ConfigError(key, name, remedy)
        self._path = Path(
            settings.store_path_broker_identity or Path(settings.store_path_root_dir) / _FILE_NAME
        )
        self._temp_path = self._path.with_name(self._path.name + _TEMP_SUFFIX)

    def identity(self, broker_id: int) -> Identity:
        """This broker under an id."""
        return Identity(self._cluster, self._broker_name, broker_id)

    def load(self) -> Identity | AppliedIdentity | None:
        """What this broker is, or applied to be; None if it never asked.

        Raises ForeignFile if a file is of another broker, or not of this form.
        """
        if (fields := self._read(self._path, 3)) is not None:
            return self._checked(self._path, fields)
        if (fields := self._read(self._temp_path, 4)) is not None:
            return AppliedIdentity(self._checked(self._temp_path, fields[:3]), fields[3])
        return None

    def apply_for(self, applied: AppliedIdentity) -> None:
        """Write down what is about to be applied for."""
        self._write(self._temp_path, applied.identity, applied.check_code)

    def keep(self, identity: Identity) -> None:
        """Write down what this broker is, for good."""
        self._write(self._path, identity)
        self.give_up()

    def give_up(self) -> None:
        """Forget what was applied for."""
        self._disk.remove(self._temp_path)
        self._disk.sync_dirs()

    def forget(self) -> None:
        """Be nobody: the log is about to go, and the id stands for what it holds."""
        self._disk.remove(self._path)
        self.give_up()

    def _read(self, path: Path, field_count: int) -> list[str] | None:
        try:
            text = self._disk.read(path).decode(errors="replace").strip()
        except FileNotFoundError:
            return None
        fields = text.split(_SEPARATOR)
        if len(fields) != field_count or not (fields[2].isdecimal() and fields[2].isascii()):
            raise ForeignFile(path, f"{text[:200]!r} is no {path.name}", self._way_out(path))
        return fields

    def _checked(self, path: Path, fields: list[str]) -> Identity:
        found = Identity(fields[0], fields[1], int(fields[2]))
        if (found.cluster, found.broker_name) != (self._cluster, self._broker_name):
            raise ForeignFile(
                path,
                f"it is replica {found.broker_id} of {found.broker_name} in cluster {found.cluster}, and the "
                f"settings say {self._broker_name} in {self._cluster}",
                "set brokerName and brokerClusterName back, or give this broker a store of its own",
            )
        if not FIRST_ID <= found.broker_id <= INT64_MAX:
            raise ForeignFile(path, f"{found.broker_id} is no id of a controller", self._way_out(path))
        return found

    def _way_out(self, path: Path) -> str:
        if path == self._temp_path:
            return "delete it; another id is applied for then"
        return (
            f"write {self._cluster}{_SEPARATOR}{self._broker_name}{_SEPARATOR} and the id into it that "
            "getSyncStateSet shows for this broker, or delete it and be given another id"
        )

    def _write(self, path: Path, identity: Identity, *more: str) -> None:
        self._disk.make_dir(path.parent)
        fields = (identity.cluster, identity.broker_name, str(identity.broker_id), *more)
        self._disk.write_durably(path, _SEPARATOR.join(fields).encode())
