"""Stands in on the ports of a master that died, if that is of use to anybody."""

import asyncio
import logging
from contextlib import ExitStack

from tanist.coord import RegistryError
from tanist.model.host import FAST_PORT_DISTANCE
from tanist.model.reading import (
    BadReadingRecord,
    alive_path,
    assignment_path,
    decode_assignment,
    decode_read_record,
    read_record_path,
)
from tanist.model.route import MASTER_ID
from tanist.remoting import bind_port
from tanist.remoting.file_limit import first_kept_file, raise_file_limit
from tanist.supervisor.kept_registry import KeptRegistry
from tanist.supervisor.settings import SupervisorSettings
from tanist.supervisor.stand_in import StandIn, find_heir, longest_wait_s
from tanist.supervisor.stand_in_ports import StandInPorts

_log = logging.getLogger(__name__)

_BACKLOG = 1024
_MOST_CALLERS = 4096
_REGISTRY_S = 1.0
"""How long the registry has to say who could be read."""


async def stand_in(settings: SupervisorSettings, kept: KeptRegistry, *, asked: asyncio.Event) -> None:
    """Lead who calls the dead master to the broker that is read, until that is over or ``asked`` to stop.

    Without a slave that lives, or without the ports, there is nothing to be done.
    """
    if not await _has_heir(settings, kept):
        return
    raise_file_limit()
    with ExitStack() as stack:
        try:
            ports = {
                stack.enter_context(
                    bind_port(settings.bind_address, settings.listen_port - distance)
                ): distance
                for distance in (0, FAST_PORT_DISTANCE)
            }
            for port in ports:
                port.listen(_BACKLOG)
        except OSError as error:
            _log.warning("no stand-in address=%s error=%s", settings.address, error)
            return
        machine = StandIn(
            settings.address,
            began_s=asyncio.get_running_loop().time(),
            limit_s=settings.broker_stand_in_mills / 1000,
            wait_s=longest_wait_s(settings.slave_consume_checks),
        )
        _log.info("stand-in began address=%s", settings.address)
        # A caller who is led takes two files.
        most_callers = min(_MOST_CALLERS, first_kept_file() // 2)
        served = StandInPorts(machine, settings.broker_name, kept, most_callers=most_callers)
        await served.serve(ports, asked=asked)


async def _has_heir(settings: SupervisorSettings, kept: KeptRegistry) -> bool:
    """Whether somebody who is alive is read in the master's place, or will be."""
    group = settings.broker_name
    try:
        async with asyncio.timeout(_REGISTRY_S):
            registry = await kept.opened()
            assigned = await registry.read(assignment_path(group))
            recorded = await registry.read(read_record_path(group))
            heir = find_heir(
                decode_assignment(assigned.value) if assigned is not None else None,
                decode_read_record(recorded.value) if recorded is not None else None,
                address=settings.address,
                is_master=settings.broker_id == MASTER_ID,
            )
            is_alive = heir is not None and await registry.read(alive_path(group, heir)) is not None
    except (TimeoutError, RegistryError, BadReadingRecord) as error:
        _log.warning("no stand-in address=%s error=%r", settings.address, error)
        return False
    if not is_alive:
        _log.info(
            "no stand-in address=%s it is no master, or no slave lives that may be read", settings.address
        )
    return is_alive
