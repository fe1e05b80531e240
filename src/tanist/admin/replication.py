"""How masters and slaves stand to each other, and filling a slave anew."""

import asyncio
from collections.abc import AsyncGenerator

from tanist.admin.refused import NotThere
from tanist.client.session.wire import Wire
from tanist.errors import MQError, ResponseError
from tanist.model.route import BrokerData, ClusterInfo
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.sync import RebuildSlaveRequest
from tanist.protocol.java_json import decode_java_json

_LOOK_S = 0.3
_PATIENCE_S = 30.0
"""So long a slave that begins anew may not answer."""


async def ha_status(wire: Wire, address: str) -> HARuntimeInfo:
    """How the broker at ``address`` stands to its slaves or its master. RocketMQ's tell less."""
    answer = await wire.ask(address, Command.request(RequestCode.GET_BROKER_HA_STATUS))
    return decode_java_json(answer.body, HARuntimeInfo)


async def cluster_brokers(wire: Wire, name_server: str, cluster: str) -> list[str]:
    """The addresses of all brokers of a cluster, each master before its slaves."""
    groups = await _cluster_groups(wire, name_server, cluster)
    return [group.broker_addrs[broker_id] for group in groups for broker_id in sorted(group.broker_addrs)]


async def cluster_masters(wire: Wire, name_server: str, cluster: str) -> list[str]:
    """The addresses of all masters of a cluster. Raises NotThere while it has none."""
    groups = await _cluster_groups(wire, name_server, cluster)
    masters = [group.master_addr for group in groups if group.master_addr is not None]
    if not masters:
        raise NotThere(f"the cluster {cluster} has no master now; tanist admin clusterList shows its brokers")
    return masters


async def _cluster_groups(wire: Wire, name_server: str, cluster: str) -> list[BrokerData]:
    answer = await wire.ask(name_server, Command.request(RequestCode.GET_BROKER_CLUSTER_INFO))
    info = decode_java_json(answer.body, ClusterInfo)
    if cluster not in info.cluster_addr_table:
        known = ", ".join(sorted(info.cluster_addr_table)) or "none"
        raise NotThere(f"the name server {name_server} knows no cluster {cluster}; it knows {known}")
    return [info.broker_addr_table[name] for name in sorted(info.cluster_addr_table[cluster])]


async def rebuild_slave(wire: Wire, address: str, status: HARuntimeInfo) -> AsyncGenerator[HARuntimeInfo]:
    """Have the slave at ``address``, whose status this is, filled anew; how it stands, until it is in step.

    Its log is set aside at first and deleted at last. Raises ResponseError if it refuses or can not.
    """
    header = RebuildSlaveRequest(broker_name=status.broker_name or "", broker_id=status.broker_id or 0)
    await wire.ask(address, Command.request(RequestCode.REBUILD_SLAVE, header))
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + _PATIENCE_S
    while True:
        await asyncio.sleep(_LOOK_S)
        try:
            found = await ha_status(wire, address)
        except MQError:
            # It has no port for a moment, or answers late because its files are moved.
            if loop.time() > deadline_s:
                raise
            continue
        deadline_s = loop.time() + _PATIENCE_S
        if found.started_ms == status.started_ms or found.client.aside_count is None:
            # It has not ended yet, or serves again and has not begun to follow.
            continue
        if found.client.rebuild_failure is not None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, found.client.rebuild_failure)
        yield found
        if not found.client.aside_count:
            return
