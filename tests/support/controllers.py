"""What a controller knows about a replica group, whoever made the controller.

with ControllerView(controller.address) as view:
    view.wait_for_set("broker-a", size=2)
    print(view.group("broker-a").master_address)
"""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.replication import ReplicaGroupView, SyncStateData
from tanist.protocol.headers.controller import ControllerMetadataResponse
from tanist.protocol.java_json import decode_java_json
from tests.support.wire import Wire

_TIMEOUT_S = 60.0
_POLL_S = 0.02
_UNKNOWN = ReplicaGroupView()


class ControllerView:
    """A connection to one controller. A controller that was started again is connected again."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._wire: Wire | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def is_leader(self) -> bool:
        """Whether it answers, and leads the others, if there are any."""
        answer = self._ask(Command.request(RequestCode.CONTROLLER_GET_METADATA_INFO))
        return answer is not None and answer.header(ControllerMetadataResponse).is_leader is True

    def group(self, name: str) -> ReplicaGroupView:
        """Master, epoch and sync state set of this group; all empty if nothing is known of it."""
        request = Command.request(
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, body=msgspec.json.encode([name])
        )
        answer = self._ask(request)
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return _UNKNOWN
        return decode_java_json(answer.body, SyncStateData).groups.get(name, _UNKNOWN)

    def wait_for_leader(self) -> None:
        """Wait until it leads: before that it takes nothing."""
        self._wait(self.is_leader, f"the controller at {self._address} leads")

    def wait_for_set(self, name: str, *, size: int, timeout_s: float = _TIMEOUT_S) -> ReplicaGroupView:
        """Wait until the group has a master, and so many replicas, the master counted, are in step."""
        seen = _UNKNOWN

        def is_there() -> bool:
            nonlocal seen
            seen = self.group(name)
            return seen.master_broker_id is not None and len(seen.in_sync_replicas) >= size

        self._wait(is_there, f"{size} replicas of {name} are in step", timeout_s=timeout_s)
        return seen

    def wait_for_epoch(self, name: str, *, beyond: int, poll_s: float = _POLL_S) -> ReplicaGroupView:
        """Wait until the group has a master of a later epoch."""
        seen = _UNKNOWN

        def is_there() -> bool:
            nonlocal seen
            seen = self.group(name)
            return seen.master_address is not None and seen.master_epoch > beyond

        self._wait(is_there, f"{name} has a master of an epoch beyond {beyond}", poll_s=poll_s)
        return seen

    def _wait(
        self,
        is_so: Callable[[], bool],
        what: str,
        *,
        poll_s: float = _POLL_S,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not is_so():
            assert time.monotonic() < deadline_s, f"not within {timeout_s:g} s: {what}"
            time.sleep(poll_s)

    def _ask(self, request: Command) -> Command | None:
        """Its answer; None if it can not be reached."""
        try:
            if self._wire is None:
                self._wire = Wire(self._address)
            return self._wire.ask(request)
        except (OSError, AssertionError):
            self.close()
            return None
