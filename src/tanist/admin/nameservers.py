"""Name servers: their settings, their keys and values, and who may be written."""

from collections.abc import Awaitable, Callable, Sequence

from tanist.admin.cluster import cluster_info
from tanist.admin.parallel import Told, ask_each
from tanist.admin.refused import NotThere
from tanist.client.session.wire import Wire
from tanist.errors import RemotingError
from tanist.protocol.bodies.config_text import decode_config, encode_config
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import BrokerNameRequest
from tanist.protocol.headers.nameserver import (
    AddWritePermResponse,
    GetKVConfigResponse,
    KVConfigRequest,
    PutKVConfigRequest,
    WipeWritePermResponse,
)

ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"
"""Where name servers keep which queues of an ordered topic each broker has."""


async def answering(wire: Wire, addresses: Sequence[str]) -> str:
    """The first of several name servers that answers: each knows all brokers. One alone is not tried."""
    for address in addresses[:-1]:
        try:
            await cluster_info(wire, address)
        except RemotingError:
            continue
        return address
    return addresses[-1]


async def nameserver_config(wire: Wire, address: str) -> dict[str, str]:
    """The settings that a name server runs with."""
    answer = await wire.ask(address, Command.request(RequestCode.GET_NAMESRV_CONFIG))
    return decode_config(answer.body)


async def update_nameserver_config(
    wire: Wire, addresses: Sequence[str], changes: dict[str, str]
) -> list[Told[None]]:
    """Change settings of all these name servers."""

    async def update(address: str) -> None:
        await wire.ask(
            address, Command.request(RequestCode.UPDATE_NAMESRV_CONFIG, body=encode_config(changes))
        )

    return await ask_each(addresses, update)


async def wipe_write_perm(wire: Wire, addresses: Sequence[str], broker_name: str) -> list[Told[int]]:
    """Keep producers from a broker: no route says any more that it takes messages; of how many topics."""

    async def wipe(address: str) -> int:
        header = BrokerNameRequest(broker_name=broker_name)
        answer = await wire.ask(address, Command.request(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header))
        return _counted(answer.header(WipeWritePermResponse).wiped_topic_count, broker_name)

    return await ask_each(addresses, wipe)


async def add_write_perm(wire: Wire, addresses: Sequence[str], broker_name: str) -> list[Told[int]]:
    """Let producers come back to a broker; for how many topics."""

    async def add(address: str) -> int:
        header = BrokerNameRequest(broker_name=broker_name)
        answer = await wire.ask(address, Command.request(RequestCode.ADD_WRITE_PERM_OF_BROKER, header))
        return _counted(answer.header(AddWritePermResponse).added_topic_count, broker_name)

    return await ask_each(addresses, add)


async def put_value(
    wire: Wire, addresses: Sequence[str], *, namespace: str, key: str, value: str
) -> list[Told[None]]:
    """Set one value at all name servers: they do not tell each other."""
    header = PutKVConfigRequest(namespace=namespace, key=key, value=value)
    return await ask_each(addresses, _ordering(wire, RequestCode.PUT_KV_CONFIG, header))


async def delete_value(wire: Wire, addresses: Sequence[str], *, namespace: str, key: str) -> list[Told[None]]:
    """Delete one value at all name servers."""
    header = KVConfigRequest(namespace=namespace, key=key)
    return await ask_each(addresses, _ordering(wire, RequestCode.DELETE_KV_CONFIG, header))


async def get_value(wire: Wire, address: str, *, namespace: str, key: str) -> str | None:
    """One value. Raises NotFound if the name server has none."""
    header = KVConfigRequest(namespace=namespace, key=key)
    answer = await wire.ask(address, Command.request(RequestCode.GET_KV_CONFIG, header))
    return answer.header(GetKVConfigResponse).value


def _counted(count: int, broker_name: str) -> int:
    """Every broker has topics, so none is of a broker that is misspelt or gone. Raises NotThere."""
    if not count:
        raise NotThere(f"no route leads to a broker {broker_name}; tanist admin clusterList shows the names")
    return count


def _ordering(
    wire: Wire, code: RequestCode, header: PutKVConfigRequest | KVConfigRequest
) -> Callable[[str], Awaitable[None]]:
    async def order(address: str) -> None:
        await wire.ask(address, Command.request(code, header))

    return order
