"""What the registry keeps of one replica group: its ids, who is master in which epoch, who is in step.

Pure. Epochs only rise. While there is a master it is in the sync state set, and the set is within the ids.
"""

from urllib.parse import quote, unquote

import msgspec

from tanist.errors import MQError, ResponseError
from tanist.protocol.codes import ResponseCode
from tanist.protocol.java_json import BAD_JSON

GROUPS_PATH = "/groups"
FIRST_BROKER_ID = 1
DEFAULT_LEASE_MS = 10_000
"""How long a master is waited for that never told how long it may be silent. RocketMQ's default."""

MAX_TEXT_CHARS = 512
"""Of a name, an address, a session or a check code: a record is small, and is written whole each time."""


class BadGroupRecord(MQError):
    """The registry holds something that is no record of a replica group."""


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """One registered replica. Who shows the same check code is the same."""

    address: str
    check_code: str


class GroupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One replica group. A group that was cleaned away keeps its epochs, so that they never fall."""

    cluster: str
    broker_name: str
    replicas: dict[int, Replica] = {}
    next_id: int = FIRST_BROKER_ID
    epoch: int = 0
    set_epoch: int = 0
    sync_state_set: frozenset[int] = frozenset()
    member_sessions: dict[int, str] = {}
    """Which start of each member came to be in step. A later one may have lost the end of its log."""
    master_id: int | None = None
    master_session: str | None = None
    """Which start of the broker was elected; None for one that does not tell, and has no lease."""
    lease_ms: int = DEFAULT_LEASE_MS
    """How long that master may be silent."""
    has_reigned: bool = False
    """Whether there ever was a master: before that there is nothing that could be lost."""

    def __post_init__(self) -> None:
        assert self.master_id is None or self.master_id in self.sync_state_set
        assert self.sync_state_set <= self.replicas.keys()

    @property
    def is_known(self) -> bool:
        return bool(self.replicas)

    @property
    def master_address(self) -> str | None:
        return None if self.master_id is None else self.replicas[self.master_id].address

    def with_replica(self, broker_id: int, replica: Replica) -> "GroupRecord":
        """With a replica that is new or has moved."""
        return msgspec.structs.replace(
            self,
            replicas=self.replicas | {broker_id: replica},
            next_id=max(self.next_id, broker_id + 1),
        )

    def without_master(self) -> "GroupRecord":
        """The same reign, over: the set stays, and so does the epoch."""
        return msgspec.structs.replace(self, master_id=None, master_session=None)

    def with_master(self, broker_id: int, *, epoch: int, session: str | None, lease_ms: int) -> "GroupRecord":
        """A new reign, whose master is alone in the set at first."""
        assert epoch > self.epoch
        return msgspec.structs.replace(
            self,
            epoch=epoch,
            set_epoch=self.set_epoch + 1,
            sync_state_set=frozenset({broker_id}),
            member_sessions={} if session is None else {broker_id: session},
            master_id=broker_id,
            master_session=session,
            lease_ms=lease_ms,
            has_reigned=True,
        )


_DECODER = msgspec.json.Decoder(GroupRecord)
_ENCODER = msgspec.json.Encoder()


def encode_group(record: GroupRecord) -> bytes:
    """The record as JSON that can be read and mended by hand."""
    return _ENCODER.encode(record)


def decode_group(value: bytes, *, path: str) -> GroupRecord:
    """Read what the registry has. Raises BadGroupRecord."""
    try:
        return _DECODER.decode(value)
    except (*BAD_JSON, AssertionError) as error:
        raise BadGroupRecord(f"{path} in the registry is no record of a replica group: {error}") from error


def group_path(broker_name: str) -> str:
    """Where a group is kept. No name leaves its folder, whatever it is made of."""
    return f"{GROUPS_PATH}/{quote(broker_name, safe='').replace('.', '%2E')}"


def group_name(child: str) -> str:
    """The group that is kept under this name."""
    return unquote(child)


def require_short(*texts: str) -> None:
    """Refuse texts that say nothing, or too much to be kept."""
    for text in texts:
        if not 0 < len(text) <= MAX_TEXT_CHARS:
            raise ResponseError(
                ResponseCode.CONTROLLER_INVALID_REQUEST,
                f"names, addresses, sessions and check codes have 1 to {MAX_TEXT_CHARS} characters,"
                f" not {len(text)}",
            )
