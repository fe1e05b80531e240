"""Slave consumption, as operators see it, and the end of one whose slave is gone."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.model.route import ClusterInfo
from tanist.protocol.bodies.slave_consume import SlaveConsumeLedger, SlaveConsumeStatus
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.slave_consume import EndSlaveConsumeRequest, GetSlaveConsumeLedgerRequest
from tanist.protocol.java_json import decode_java_json

_END_TIMEOUT_S = 15.0
"""Longer than a broker tries to write to the registry: what became of it should be known."""


class Answered(NamedTuple):
    """What one broker tells, or why it does not."""

    address: str
    status: SlaveConsumeStatus | None
    failure: str | None = None
    error: MQError | None = None
    """What was raised, if that was here and now."""


async def slave_consume_status(wire: Wire, address: str) -> SlaveConsumeStatus:
    """What the broker at ``address`` may do in its group, and why.

    Raises ResponseError if it has no coordinator.

    >>> async with asking() as wire:
    ...     print((await slave_consume_status(wire, "127.0.0.1:10911")).permission)
    FULL
    """
    answer = await wire.ask(address, Command.request(RequestCode.GET_SLAVE_CONSUME_STATUS))
    return decode_java_json(answer.body, SlaveConsumeStatus)


async def slave_consume_ledger(wire: Wire, address: str, count: int) -> SlaveConsumeLedger:
    """The last entries that the broker at ``address`` wrote down, the newest last.

    >>> async with asking() as wire:
    ...     ledger = await slave_consume_ledger(wire, "127.0.0.1:10911", 20)
    >>> [entry.event for entry in ledger.entries]
    [<LedgerEvent.SWITCH: 'SWITCH'>, <LedgerEvent.HAND_BACK: 'HAND_BACK'>]
    """
    header = GetSlaveConsumeLedgerRequest(count=count)
    answer = await wire.ask(address, Command.request(RequestCode.GET_SLAVE_CONSUME_LEDGER, header))
    return decode_java_json(answer.body, SlaveConsumeLedger)


async def end_slave_consume(
    wire: Wire, status: SlaveConsumeStatus, *, reason: str, is_forced: bool = False
) -> str:
    """Have the master whose status this is be read again; what it did, in words.

    Consumers may get messages again that the slave has delivered: ``status.duplicates_if_ended`` says how
    many at most. Raises ResponseError if it refuses, as it does while the slave is alive.

    >>> async with asking() as wire:
    ...     status = await slave_consume_status(wire, "127.0.0.1:10911")
    ...     await end_slave_consume(wire, status, reason="the slave's disk is broken")
    """
    header = EndSlaveConsumeRequest(
        broker_name=status.group, term=status.term, reason=reason, is_forced=is_forced
    )
    answer = await wire.ask(
        status.address, Command.request(RequestCode.END_SLAVE_CONSUME, header), timeout_s=_END_TIMEOUT_S
    )
    return bytes(answer.body).decode(errors="replace")


async def group_statuses(wire: Wire, addresses: Iterable[str]) -> list[Answered]:
    """What these brokers tell, and all others of their group that they know of."""
    found: dict[str, Answered] = {}
    unasked = set(addresses)
    while unasked:
        answers = await asyncio.gather(*(ask_status(wire, address) for address in sorted(unasked)))
        found |= {answer.address: answer for answer in answers}
        known = {broker.address for answer in answers if answer.status for broker in answer.status.brokers}
        unasked = known - found.keys()
    return sorted(found.values())


async def ask_status(wire: Wire, address: str) -> Answered:
    """One of several: that it does not answer is something to tell."""
    try:
        return Answered(address, await slave_consume_status(wire, address))
    except MQError as error:
        return Answered(address, None, str(error), error)


async def group_addresses(wire: Wire, name_server: str, group: str) -> list[str]:
    """Where the brokers of a group are, as far as a name server knows; none if it does not know the group."""
    answer = await wire.ask(name_server, Command.request(RequestCode.GET_BROKER_CLUSTER_INFO))
    table = decode_java_json(answer.body, ClusterInfo).broker_addr_table
    return sorted(table[group].broker_addrs.values()) if group in table else []
