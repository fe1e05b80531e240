"""Ends the presence of a broker whose process is dead: its group need not wait for its session to run out."""

import asyncio
import logging

from tanist.coord import Conflict, Delete, Registry, RegistryUnavailable
from tanist.model.reading import BadReadingRecord, decode_presence
from tanist.supervisor.kept_registry import AGAIN_S, KeptRegistry

_log = logging.getLogger(__name__)

_END_S = 1.0
"""How long it is tried. Not much later the session of the dead broker is over anyway."""


async def end_presence(kept: KeptRegistry, path: str, token: str) -> None:
    """Remove the record at ``path``, unless it is of another start than the one with this token."""
    try:
        async with asyncio.timeout(_END_S):
            while True:
                if await _is_ended(await kept.opened(), path, token):
                    return
                await asyncio.sleep(AGAIN_S)
    except TimeoutError:
        _log.warning("presence not ended path=%s the registry did not answer", path)


async def _is_ended(registry: Registry, path: str, token: str) -> bool:
    """Try once; whether there is nothing left to do."""
    try:
        found = await registry.read(path)
        if found is None or _token(found.value) != token:
            _log.info("presence had ended path=%s", path)
            return True
        await registry.commit(Delete(path, found.version))
    except (Conflict, RegistryUnavailable):
        return False
    _log.info("presence ended path=%s", path)
    return True


def _token(value: bytes) -> str | None:
    try:
        return decode_presence(value).token
    except BadReadingRecord:
        return None
