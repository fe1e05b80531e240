"""Who is alive and what they offer: all that the name server knows, decided without I/O.

    unknown --register--> alive --register, heartbeat, data version--> alive (lease renewed)
    alive --unregister, connection lost, lease over--> unknown

A replica lives by its connection and by time: whichever ends first ends it. The caller says what time
it is (any clock that only grows) and which connection speaks (anything that can be a key).

At all times each replica stands in the group of its broker name under its id, a group has at least one
replica, and a topic has queues only of brokers that have a group.
"""

import logging
from collections.abc import Hashable
from typing import Any

import msgspec

from tanist.model.data_version import DataVersion
from tanist.model.route import MASTER_ID, BrokerMemberGroup, ClusterInfo, QueueData, TopicRouteData
from tanist.model.topics import SYSTEM_PREFIX, Permission
from tanist.nameserver.replica_group import Action, CloseConnection, Replica, ReplicaGroup
from tanist.nameserver.topic_table import TopicTable
from tanist.protocol.bodies.registration import RegisterBrokerBody
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.bodies.tables import TopicList
from tanist.protocol.headers.nameserver import (
    BrokerIdentityRequest,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
)

DEFAULT_LEASE_S = 120.0
"""How long a replica is believed to be alive after it was last heard of, unless it says otherwise."""

_MEMBERS_PREFIX = SYSTEM_PREFIX + "SYNC_BROKER_MEMBER_"
"""Brokers look up their own group by the route of such a topic, so it shows the group as it is."""

_log = logging.getLogger(__name__)


class TopicRoute(TopicRouteData, frozen=True, kw_only=True, rename="camel"):
    """A route with what RocketMQ 5 adds for its static topics."""

    topic_queue_mapping_by_broker: dict[str, dict[str, Any]] | None = None


class RouteTable:
    """Replicas, their groups and their topics. One method an event; some return actions for the shell."""

    def __init__(self) -> None:
        self.topics = TopicTable()
        self._groups: dict[str, ReplicaGroup] = {}
        self._replicas: dict[tuple[str, str], Replica] = {}

    def register(
        self,
        header: RegisterBrokerRequest,
        body: RegisterBrokerBody,
        *,
        connection: Hashable,
        now_s: float,
        zone_name: str | None = None,
        is_topic_list_complete: bool = False,
    ) -> tuple[RegisterBrokerResponse, list[Action]]:
        """A broker makes itself known, or says that it is still there.

        Topics that are missing from a later registration stay, unless ``is_topic_list_complete``.
        """
        replica = _replica_of(header, body, connection=connection, now_s=now_s)
        known = self._replicas.get(replica.key)
        group = self._groups.get(replica.broker_name)
        if group is not None and _is_outdated(replica, group):
            # A master that was deposed while it was cut off comes back and claims its old place.
            _log.warning("stale registration refused %s", _describe(replica))
            return RegisterBrokerResponse(), self._remove(known, "outdated") if known else []

        old_min_id = group.min_id if group is not None else None
        actions: list[Action] = []
        if known is not None and known.broker_name != replica.broker_name:
            actions, known = self._remove(known, "renamed"), None
        group = self._enter(replica, known)
        group.is_acting_master_enabled = bool(header.enable_acting_master)
        group.zone_name = zone_name

        is_prime_slave = header.enable_acting_master is not None and replica.broker_id == group.min_id
        if replica.broker_id == MASTER_ID or is_prime_slave:
            is_news = (
                known is None
                or known.broker_id != replica.broker_id
                or known.data_version != replica.data_version
            )
            self._take_topics(
                replica.broker_name, body.topic_configs, is_news=is_news, is_complete=is_topic_list_complete
            )
        if old_min_id is not None and replica.broker_id < old_min_id:
            actions.append(group.someone_came(replica))
        return _master_for(replica, group), actions

    def unregister(self, header: BrokerIdentityRequest) -> list[Action]:
        """A broker says goodbye."""
        replica = self._replicas.get((header.cluster_name, header.broker_addr))
        if replica is None or replica.broker_name != header.broker_name:
            return []
        return self._remove(replica, "unregistered")

    def heartbeat(self, cluster: str, address: str, *, now_s: float) -> None:
        """A broker is still there. One that is not known has to register first."""
        replica = self._replicas.get((cluster, address))
        if replica is not None:
            replica.renewed_at_s = now_s

    def query_data_version(self, cluster: str, address: str, *, now_s: float) -> DataVersion | None:
        """The version of a broker's topics that is held here, None if it is not known. Renews its lease."""
        self.heartbeat(cluster, address, now_s=now_s)
        replica = self._replicas.get((cluster, address))
        return replica.data_version if replica is not None else None

    def on_connection_lost(self, connection: Hashable) -> list[Action]:
        """Whoever spoke over ``connection`` is gone; several brokers of one process may share one."""
        gone = [replica for replica in self._replicas.values() if replica.connection == connection]
        return [action for replica in gone for action in self._remove(replica, "connection lost")]

    def on_tick(self, now_s: float) -> list[Action]:
        """Let go of those whose lease is over."""
        gone = [replica for replica in self._replicas.values() if replica.is_expired(now_s)]
        actions: list[Action] = []
        for replica in gone:
            actions += self._remove(replica, "lease over")
            actions.append(CloseConnection(replica.connection))
        return actions

    def register_topic(self, topic: str, offered: list[QueueData]) -> None:
        """Add or change queues of a topic; all or none, since all their brokers must be known."""
        unknown = [queues.broker_name for queues in offered if queues.broker_name not in self._groups]
        if unknown:
            _log.warning("topic refused topic=%s unknown_brokers=%s", topic, ",".join(unknown))
            return
        for queues in offered:
            self.topics.put(topic, queues)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic, in one cluster or in all. The brokers that hold it may register it again."""
        if cluster:
            self.topics.forget(topic, self._broker_names(cluster))
        else:
            self.topics.forget_topic(topic)

    def route(self, topic: str, *, is_acting_master_shown: bool = False) -> TopicRoute | None:
        """Where ``topic`` is, or None if nobody has it."""
        offered = self.topics.queues(topic)
        if not offered:
            return None
        groups = [self._groups[broker_name] for broker_name in offered]
        is_shown = is_acting_master_shown and not topic.startswith(_MEMBERS_PREFIX)
        return TopicRoute(
            queue_datas=[
                _read_only(queues) if self._groups[broker_name].is_read_only else queues
                for broker_name, queues in offered.items()
            ],
            broker_datas=[group.data(is_acting_master_shown=is_shown) for group in groups],
            filter_server_table={
                replica.address: replica.filter_servers
                for group in groups
                for replica in group.replicas.values()
                if replica.filter_servers
            },
            topic_queue_mapping_by_broker=self.topics.mappings(topic),
        )

    def cluster_info(self) -> ClusterInfo:
        """Every group, by name and by cluster."""
        clusters = {group.cluster for group in self._groups.values()}
        return ClusterInfo(
            broker_addr_table={name: group.data() for name, group in self._groups.items()},
            cluster_addr_table={cluster: self._broker_names(cluster) for cluster in clusters},
        )

    def groups(self) -> list[ReplicaGroup]:
        """Every group as it is."""
        return list(self._groups.values())

    def member_group(self, cluster: str, broker_name: str) -> BrokerMemberGroup:
        """The live replicas of a broker name; none if it is not known."""
        group = self._groups.get(broker_name)
        return group.members() if group else BrokerMemberGroup(cluster=cluster, broker_name=broker_name)

    def topics_of_cluster(self, cluster: str) -> frozenset[str]:
        return self.topics.of_brokers(self._broker_names(cluster))

    def system_topics(self) -> TopicList:
        """The topics named after clusters and brokers, and a broker that can be asked for the others."""
        clusters = {group.cluster for group in self._groups.values()}
        some_group = next(iter(self._groups.values()), None)
        return TopicList(
            topics=frozenset(clusters | self._groups.keys()),
            broker_addr=some_group.replicas[some_group.min_id].address if some_group else None,
        )

    def _broker_names(self, cluster: str) -> frozenset[str]:
        return frozenset(name for name, group in self._groups.items() if group.cluster == cluster)

    def _enter(self, replica: Replica, known: Replica | None) -> ReplicaGroup:
        """Give the replica its place. Who was there before, or it itself under another id, has to go."""
        group = self._groups.get(replica.broker_name)
        if group is None:
            group = ReplicaGroup(replica.cluster, replica.broker_name)
            self._groups[replica.broker_name] = group
        elif known is not None:
            group.replicas.pop(known.broker_id, None)
        holder = group.replicas.get(replica.broker_id)
        if holder is not None:
            del self._replicas[holder.key]
        group.replicas[replica.broker_id] = replica
        self._replicas[replica.key] = replica
        if known is None or known.broker_id != replica.broker_id:
            _log.info("replica registered %s", _describe(replica))
        return group

    def _take_topics(
        self, broker_name: str, table: TopicConfigTable, *, is_news: bool, is_complete: bool
    ) -> None:
        """Take over what is new.

        Under the version that is held already only what is not known here counts: so a wiped write
        permission stays, and a topic that was deleted here alone comes back.
        """
        if is_complete and not table.mappings:
            named = {config.topic_name for config in table.topics.values()}
            for topic in self.topics.of_brokers((broker_name,)) - named:
                self.topics.forget(topic, (broker_name,))
        for config in table.topics.values():
            if is_news or broker_name not in self.topics.queues(config.topic_name):
                self.topics.take(broker_name, config)
        if is_news:
            for topic, mapping in (table.mappings or {}).items():
                self.topics.put_mapping(topic, broker_name, mapping)

    def _remove(self, replica: Replica, reason: str) -> list[Action]:
        _log.info("replica gone %s reason=%s", _describe(replica), reason.replace(" ", "-"))
        del self._replicas[replica.key]
        group = self._groups[replica.broker_name]
        had_min_id = replica.broker_id == group.min_id
        del group.replicas[replica.broker_id]
        if not group.replicas:
            del self._groups[replica.broker_name]
            self.topics.forget_broker(replica.broker_name)
            return []
        if had_min_id and group.is_acting_master_enabled:
            return [group.someone_went(replica.address)]
        return []


def _replica_of(
    header: RegisterBrokerRequest, body: RegisterBrokerBody, *, connection: Hashable, now_s: float
) -> Replica:
    lease_ms = header.heartbeat_timeout_ms
    return Replica(
        cluster=header.cluster_name,
        broker_name=header.broker_name,
        broker_id=header.broker_id,
        address=header.broker_addr,
        ha_address=header.ha_server_addr,
        connection=connection,
        data_version=body.topic_configs.data_version,
        filter_servers=body.filter_servers,
        lease_s=DEFAULT_LEASE_S if lease_ms is None else lease_ms / 1000,
        renewed_at_s=now_s,
    )


def _is_outdated(replica: Replica, group: ReplicaGroup) -> bool:
    """Whether another address holds the same place and has seen a later master."""
    holder = group.replicas.get(replica.broker_id)
    if holder is None or holder.key == replica.key:
        return False
    return holder.data_version.state_version > replica.data_version.state_version


def _master_for(replica: Replica, group: ReplicaGroup) -> RegisterBrokerResponse:
    master = group.master
    if master is None or master is replica:
        return RegisterBrokerResponse()
    return RegisterBrokerResponse(ha_server_addr=master.ha_address, master_addr=master.address)


def _read_only(queues: QueueData) -> QueueData:
    return msgspec.structs.replace(queues, perm=queues.perm & ~int(Permission.WRITE))


def _describe(replica: Replica) -> str:
    return (
        f"cluster={replica.cluster} broker={replica.broker_name} id={replica.broker_id}"
        f" address={replica.address}"
    )
