"""Topics and settings that operators change, and the message that they send to try a topic."""

import asyncio
import os
import secrets
from collections.abc import Awaitable, Sequence

import msgspec

from tanist.admin.brokers import update_broker_config
from tanist.admin.topic_changes import (
    delete_topic_at_broker,
    delete_topic_at_name_server,
    send_test_message,
    update_topic,
)
from tanist.broker.settings import UPDATABLE_KEYS
from tanist.client.message import Message
from tanist.client.session.wire import Wire
from tanist.clock import Clock
from tanist.console.errors import BadRequest, Partly, Refused, Unknown, is_nothing_done
from tanist.console.views.topics import TopicKind, kind_of
from tanist.console.watching.snapshot import BrokerLook, Snapshot
from tanist.errors import MQError
from tanist.model.topics import MAX_TOPIC_CHARS, Permission, TopicConfig
from tanist.protocol.message_id import UniqueIds

MAX_QUEUES = 1_024
GRAVE_KEYS = frozenset(
    {
        *("brokerPermission", "cleanFileForciblyEnable", "fileReservedTime", "deleteWhen"),
        *("diskMaxUsedSpaceRatio", "diskSpaceCleanForciblyRatio"),
    }
)
"""Settings that can take a broker from its clients, or messages from it: its address has to be typed."""
_PERMISSIONS = {
    "RW": Permission.READ | Permission.WRITE,
    "R": Permission.READ,
    "W": Permission.WRITE,
}
_THIS_MACHINE = bytes((127, 0, 0, 1))


class ChangeDesk:
    """Changes brokers that a snapshot names."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        self._wire = wire
        self._clock = clock
        self._ids = UniqueIds(address=_THIS_MACHINE, pid=os.getpid(), discriminator=secrets.randbits(32))

    async def update_topic(
        self,
        snapshot: Snapshot,
        topic: str,
        *,
        broker_names: Sequence[str],
        queue_count: int,
        permission: str,
        is_ordered: bool,
    ) -> str:
        """Make a topic on the masters of these replica groups, or of all, or change it there."""
        if not 0 < len(topic) <= MAX_TOPIC_CHARS or kind_of(topic) is not TopicKind.NORMAL:
            raise BadRequest(
                f"{topic[:40]!r} can not be a topic: use 1 to {MAX_TOPIC_CHARS} characters, no system's name"
            )
        if not 0 < queue_count <= MAX_QUEUES or permission not in _PERMISSIONS:
            raise BadRequest(f"a topic has 1 to {MAX_QUEUES} queues, and may be {', '.join(_PERMISSIONS)}")
        masters = _masters(snapshot, broker_names)
        changed: list[Awaitable[None]] = []
        for look in masters:
            # What is not in the form stays as it is.
            known = look.tables.topics.get(topic) or TopicConfig(topic_name=topic)
            config = msgspec.structs.replace(
                known,
                read_queue_count=queue_count,
                write_queue_count=queue_count,
                perm=int(_PERMISSIONS[permission]),
                is_ordered=is_ordered,
            )
            changed.append(update_topic(self._wire, look.address, config))
        return await _all_done(
            f"{topic} has {queue_count} queue{'' if queue_count == 1 else 's'}", masters, changed
        )

    async def delete_topic(self, snapshot: Snapshot, topic: str) -> str:
        """Delete a topic on all masters, and then from all name servers."""
        if kind_of(topic) is TopicKind.SYSTEM:
            raise Refused(f"{topic} is the system's own; nothing was deleted")
        masters = [look for look in _masters(snapshot, ()) if topic in look.tables.topics]
        if not masters:
            raise Unknown(f"no master has a topic {topic}")
        done = await _all_done(
            f"{topic} is deleted",
            masters,
            [delete_topic_at_broker(self._wire, look.address, topic) for look in masters],
        )
        failures: list[str] = []
        for name_server in snapshot.name_servers or (snapshot.name_server,):
            try:
                await delete_topic_at_name_server(self._wire, name_server, topic)
            except MQError as error:
                failures.append(f"{name_server}: {error}")
        return "; ".join([done, *(f"a name server still lists it, {failure}" for failure in failures)])

    async def send(self, snapshot: Snapshot, topic: str, *, body: str, tags: str, keys: str) -> str:
        """Send one message to a master that has the topic; where it went, in words."""
        masters = [look for look in _masters(snapshot, ()) if topic in look.tables.topics]
        if not masters:
            raise Refused(f"no master that answers has {topic}; nothing was sent")
        message = Message(topic, body.encode(), tags=tags.strip() or None, keys=keys.split())
        now_ms = self._clock.now_ms()
        look = masters[secrets.randbelow(len(masters))]
        sent = await send_test_message(
            self._wire, look.address, message, message_id=self._ids.next_id(now_ms), now_ms=now_ms
        )
        return (
            f"sent {sent.message_id} to queue {sent.queue_id} of {look.name} at {sent.queue_offset}: "
            f"{sent.status}"
        )

    async def change_setting(self, snapshot: Snapshot, address: str, key: str, value: str) -> str:
        """Change one setting of a broker. It decides, and says why not."""
        look = snapshot.find(address)
        if look is None:
            raise Unknown(f"no broker at {address} is listed, or was in the last minutes")
        if key not in UPDATABLE_KEYS:
            raise Refused(f"{key[:60]} is none of the settings that are changed here; nothing was changed")
        before = (look.tables.config or {}).get(key, "not known")
        await update_broker_config(self._wire, address, {key: value})
        return f"{key} of {address} is {value}; it was {before}"


def _masters(snapshot: Snapshot, names: Sequence[str]) -> list[BrokerLook]:
    """The masters that answer, of these replica groups or of all. Raises Refused if one does not."""
    masters = {look.name: look for look in snapshot.brokers if look.is_master and look.is_up}
    wanted = list(names) or snapshot.names
    missing = [name for name in wanted if name not in masters]
    if missing or not wanted:
        raise Refused(f"no master of {', '.join(missing) or 'any group'} answers; nothing was changed")
    return [masters[name] for name in wanted]


async def _all_done(what: str, masters: Sequence[BrokerLook], changes: Sequence[Awaitable[None]]) -> str:
    """Wait for all, and say who did it. Raises Refused if nobody did, Partly if somebody did not."""
    results = await asyncio.gather(*changes, return_exceptions=True)
    done: list[str] = []
    failures: list[str] = []
    is_refused = True
    for look, result in zip(masters, results, strict=True):
        if result is None:
            done.append(look.name)
        elif isinstance(result, MQError):
            failures.append(f"{look.name}: {result}")
            is_refused &= is_nothing_done(result)
        else:
            raise result
    told = f"{what} on {', '.join(done) or 'no broker'}"
    if failures:
        problem = f"{told}; not on {'; '.join(failures)}"
        raise Partly(problem) if done or not is_refused else Refused(problem)
    return told
