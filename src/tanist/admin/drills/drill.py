"""The drill itself: mastership of a live group moves to a slave and comes back, under a small load."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import groupby
from operator import itemgetter

from tanist.admin.asking import Access
from tanist.admin.cluster import cluster_info
from tanist.admin.controllers import elect_master
from tanist.admin.drills.probe import Probe, Seen, probing
from tanist.admin.drills.readiness import Member, Readiness, judge, judge_readers, replica_id
from tanist.admin.groups import delete_group, update_group
from tanist.admin.parallel import Told, ask_each
from tanist.admin.refused import NotThere, Unsafe
from tanist.admin.replication import ha_status
from tanist.admin.rows import Row
from tanist.admin.slave_consume import slave_consume_status
from tanist.admin.topics import delete_topic, update_topic
from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.topics import TopicConfig

TOPIC_PREFIX = "TANIST_DRILL_"
"""Before the group's name: the topic of the drill and its consumer group, deleted at its end."""
_LOOK_S = 0.1
_SETTLED_COUNT = 5


class Step(Row, frozen=True, kw_only=True):
    """One change of mastership."""

    from_addr: str
    to_addr: str
    epoch: int | None
    switch_ms: int
    """From the order to the first acknowledged send after the new master said that it is one."""


class Report(Row, frozen=True, kw_only=True):
    """What a drill found."""

    broker_name: str
    is_controlled: bool
    is_ready: bool
    objections: list[str]
    steps: list[Step]
    seen: Seen | None

    @property
    def is_passed(self) -> bool:
        """All came back, and nothing that was acknowledged is missing."""
        return self.is_ready and (self.seen is None or self.seen.lost_count == 0)


async def look(wire: Wire, name_server: str, broker_name: str) -> tuple[str, Readiness]:
    """The cluster of a group, and whether a failover of it would go well now. Nothing is changed."""
    info = await cluster_info(wire, name_server)
    group = info.broker_addr_table.get(broker_name)
    if group is None:
        known = ", ".join(sorted(info.broker_addr_table)) or "none"
        raise NotThere(f"{name_server} knows no brokers {broker_name}; it knows {known}")
    places = sorted(group.broker_addrs.items())
    told = await ask_each([address for _, address in places], lambda address: ha_status(wire, address))
    members = [
        Member(broker_id, each.address, each.value, None if each.failure is None else str(each.failure))
        for (broker_id, _), each in zip(places, told, strict=True)
    ]
    found = judge(members)
    if found.is_controlled or found.objections:
        return group.cluster, found
    statuses = await ask_each(
        [address for _, address in places], lambda address: slave_consume_status(wire, address)
    )
    # Who has no coordinator has no standing: its slave is read by clients that know it, in no switch.
    readers = {each.address: each.value for each in statuses if each.value is not None}
    return group.cluster, found._replace(objections=judge_readers(readers))


class DrillStuck(MQError):
    """A drill that had begun did not come to its end; the text says where it stands."""


class Drill:
    """One drill of one group. ``on_step`` is told what is being done."""

    def __init__(
        self,
        wire: Wire,
        access: Access,
        name_servers: list[str],
        name_server: str,
        *,
        broker_name: str,
        wait_s: float,
        on_step: Callable[[str], None],
    ) -> None:
        self._wire = wire
        self._access = access
        self._name_servers = name_servers
        self._name_server = name_server
        self._broker_name = broker_name
        self._wait_s = wait_s
        self._on_step = on_step
        self._topic = f"{TOPIC_PREFIX}{broker_name}"

    async def run(self) -> Report:
        """Move mastership and bring it back. Raises Unsafe, with nothing changed, if that is not safe.

        A group with fixed roles is only looked at: its master would have to be stopped.
        """
        cluster, ready = await look(self._wire, self._name_server, self._broker_name)
        if ready.objections:
            raise Unsafe("; ".join(ready.objections))
        if not ready.is_controlled:
            return self._report(ready, [], None)
        assert ready.master is not None
        assert ready.successor is not None
        await self._make_topic(ready.master.address)
        try:
            async with probing(self._access, self._name_servers, self._topic) as probe:
                self._on_step("waits for a first message")
                await self._wait(lambda: self._is_flowing(probe, 0), "no message came through")
                steps = [await self._move(cluster, ready.master, ready.successor, probe)]
                await self._wait_in_step()
                steps.append(await self._move(cluster, ready.successor, ready.master, probe))
                await self._wait_in_step()
        finally:
            await self._clean_up(cluster)
        return self._report(ready, steps, probe.seen(time.monotonic()))

    async def _move(self, cluster: str, old: Member, new: Member, probe: Probe) -> Step:
        wanted = replica_id(new)
        assert wanted is not None
        self._on_step(f"{new.address} becomes master")
        now = await self._in_step()
        started_s = time.monotonic()
        elected = await elect_master(
            self._wire,
            [now.controller or ""],
            cluster=cluster,
            broker_name=self._broker_name,
            broker_id=wanted,
        )
        await self._wait(lambda: self._is_master(new.address), f"{new.address} did not become master")
        count = len(probe.acknowledged)
        await self._wait(lambda: self._is_flowing(probe, count), "no message came through since")
        switched_s = sorted(probe.acknowledged.values())[count]
        return Step(
            from_addr=old.address,
            to_addr=new.address,
            epoch=elected.master_epoch,
            switch_ms=round((switched_s - started_s) * 1000),
        )

    async def _wait_in_step(self) -> None:
        self._on_step("waits until all replicas are in step again")
        await self._in_step()

    async def _in_step(self) -> Readiness:
        """What is found once nothing speaks against a failover."""
        found: list[Readiness] = []

        async def is_in_step() -> bool:
            found[:] = [(await look(self._wire, self._name_server, self._broker_name))[1]]
            return not found[0].objections

        await self._wait(is_in_step, "the replicas are not in step again; see tanist admin haStatus")
        return found[0]

    async def _is_flowing(self, probe: Probe, count: int) -> bool:
        return len(probe.acknowledged) >= count + _SETTLED_COUNT

    async def _is_master(self, address: str) -> bool:
        return (await ha_status(self._wire, address)).is_master

    async def _wait(self, is_so: Callable[[], Awaitable[bool]], failure: str) -> None:
        """Until it is so. Raises DrillStuck when that takes too long: an operator has to look."""
        deadline_s = time.monotonic() + self._wait_s
        while True:
            try:
                if await is_so():
                    return
            except MQError:
                # A replica that changes its role does not answer for a moment.
                pass
            if time.monotonic() > deadline_s:
                raise DrillStuck(
                    f"the drill of {self._broker_name} stopped after {self._wait_s:g} s: {failure}"
                )
            await asyncio.sleep(_LOOK_S)

    async def _make_topic(self, master: str) -> None:
        config = TopicConfig(topic_name=self._topic, read_queue_count=2, write_queue_count=2)
        made = await update_topic(self._wire, [master], config)
        made += await update_group(self._wire, [master], SubscriptionGroupConfig(group_name=self._topic))
        for told in made:
            if told.failure is not None:
                raise told.failure

    async def _clean_up(self, cluster: str) -> None:
        """Leave nothing behind; a broker that does not answer now keeps a small topic."""
        self._on_step("deletes the topic of the drill")
        told: list[Told[None]] = []
        try:
            info = await cluster_info(self._wire, self._name_server)
            master = info.broker_addr_table[self._broker_name].master_addr
            if master is not None:
                told += await delete_group(self._wire, [master], self._topic, are_offsets_deleted=True)
            for topic in (self._topic, f"%RETRY%{self._topic}"):
                told += await delete_topic(
                    self._wire, self._name_servers, self._name_server, cluster=cluster, topic=topic
                )
        except (MQError, KeyError):
            self._on_step(f"could not delete {self._topic}; tanist admin deleteTopic does it later")
        for address, failures in groupby(
            sorted((each.address, str(each.failure)) for each in told if each.failure is not None),
            key=itemgetter(0),
        ):
            why = "; ".join(dict.fromkeys(failure for _, failure in failures))
            self._on_step(
                f"could not delete all of {self._topic} at {address}: {why}; "
                "tanist admin deleteTopic and deleteSubGroup do it later"
            )

    def _report(self, ready: Readiness, steps: list[Step], seen: Seen | None) -> Report:
        return Report(
            broker_name=self._broker_name,
            is_controlled=ready.is_controlled,
            is_ready=True,
            objections=[],
            steps=steps,
            seen=seen,
        )
