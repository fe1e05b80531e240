"""Orders of all brokers, and the approval of those that wait for it."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from tanist.admin.parallel import in_parallel
from tanist.admin.resets.orders import decide, read_orders
from tanist.admin.resets.refused import ResetRefused
from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.model.route import ClusterInfo
from tanist.protocol.bodies.reset import ResetOrderView, ResetState
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import RequestNotSupported


class Listed(NamedTuple):
    """The orders that there are, and who did not answer."""

    orders: list[ResetOrderView]
    """The newest last."""
    addresses: dict[str, str]
    """Where each broker name is asked."""
    failures: dict[str, MQError]


async def all_orders(
    wire: Wire,
    name_server: str,
    *,
    group: str | None = None,
    topic: str | None = None,
    order_id: str | None = None,
) -> Listed:
    """The orders of all masters that a name server knows. Brokers that know no orders have none."""
    answer = await wire.ask(name_server, Command.request(RequestCode.GET_BROKER_CLUSTER_INFO))
    table = decode_java_json(answer.body, ClusterInfo).broker_addr_table
    addresses = {name: data.master_addr for name, data in sorted(table.items()) if data.master_addr}
    failures: dict[str, MQError] = {}

    async def look(item: tuple[str, str]) -> Sequence[ResetOrderView]:
        name, address = item
        try:
            found = await read_orders(wire, address, group=group, topic=topic, order_id=order_id)
        except RequestNotSupported:
            return ()
        except MQError as error:
            failures[name] = error
            return ()
        return found.orders

    parts = await in_parallel(addresses.items(), look)
    orders = sorted(
        (order for part in parts for order in part), key=lambda order: (order.created_ms, order.broker_name)
    )
    return Listed(orders, addresses, failures)


async def decide_everywhere(
    wire: Wire, name_server: str, order_id: str, *, decider: str, is_approved: bool, reason: str
) -> list[ResetOrderView]:
    """Approve or reject an order at all brokers where it waits; what it is there now.

    Raises ResetRefused if it waits nowhere, or the error of a broker that refuses.
    """
    listed = await all_orders(wire, name_server, order_id=order_id)
    waiting = [order for order in listed.orders if order.state is ResetState.WAITING]
    if not waiting:
        states = ", ".join(f"{order.broker_name}: {order.state}" for order in listed.orders)
        unheard = "".join(f"; {name} does not answer: {why}" for name, why in listed.failures.items())
        raise ResetRefused(f"no order {order_id} waits for approval ({states or 'none is known'}{unheard})")

    async def decide_one(order: ResetOrderView) -> None:
        await decide(
            wire,
            listed.addresses[order.broker_name],
            order_id,
            decider=decider,
            is_approved=is_approved,
            reason=reason,
        )

    # All of them are asked, also if one refuses: what is left waits on and can be decided again.
    done = await asyncio.gather(*map(decide_one, waiting), return_exceptions=True)
    for failure in done:
        if isinstance(failure, BaseException):
            raise failure
    return (await all_orders(wire, name_server, order_id=order_id)).orders
