"""What every broker has to do now and then, whatever its role: flush, save, count, and look after clients."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

from tanist.broker.acl import AccessGuard
from tanist.broker.handlers import clients, consumption
from tanist.broker.lasting import listed, running, saving
from tanist.broker.operating.correction_events import CorrectionEvents
from tanist.broker.operating.counting import Counting
from tanist.broker.operating.slave_consume_figures import Alarm
from tanist.broker.resets import carrying as resets
from tanist.broker.state import BrokerState
from tanist.errors import MQError
from tanist.store.flush import Flusher

_log = logging.getLogger(__name__)

_CLIENT_SCAN_S = 10.0
_RESETS_SAVE_MS = 1_000


@asynccontextmanager
async def doing_chores(
    state: BrokerState, flusher: Flusher, guard: AccessGuard | None, tasks: asyncio.TaskGroup
) -> AsyncGenerator[None]:
    """Do them while the block lasts; at its end what changed is saved once more."""
    counting, events = Counting(state), CorrectionEvents(state)
    corrections = state.corrections
    chores = {
        "flush": flusher.run,
        "upkeep": state.upkeep.run,
        "scrub": state.scrub.run,
        "offsets": partial(
            saving,
            partial(_start_save_offsets, state),
            lambda: state.settings.flush_consumer_offset_interval,
        ),
        "delay offsets": partial(
            saving,
            state.delays.start_save_levels,
            lambda: state.settings.flush_delay_offset_interval,
        ),
        "timer": partial(
            saving, state.delays.start_save_timers, lambda: state.settings.timer_flush_interval_ms
        ),
        "resets": partial(saving, state.resets.start_save, lambda: _RESETS_SAVE_MS),
        "clients": partial(_scan_clients, state),
        "counting": counting.run,
        "alarm": Alarm(state).run,
        "corrections": events.run,
    }
    if guard is not None:
        chores["access rules"] = guard.watch
    with (
        listed(state.store.dispatcher.listeners, counting.on_indexed),
        listed(corrections.listeners, events.on_corrected),
        listed(corrections.loop_listeners, events.on_loop),
    ):
        try:
            async with running(tasks, chores):
                yield
        finally:
            # Not before they have ended: another thread might be saving the same offsets.
            _save_at_end(state)


async def _scan_clients(state: BrokerState) -> None:
    while True:
        await asyncio.sleep(_CLIENT_SCAN_S)
        clients.on_tick(state)
        consumption.on_tick(state)
        resets.on_tick(state)
        state.corrections.on_tick(state.clock.now_ms())


def _start_save_offsets(state: BrokerState) -> Callable[[], None] | None:
    """A slave's after the log: they say how far transactions are done with, and it may be master next."""
    finish, moved = state.offsets.start_save(), state.resets.unsaved()
    if finish is None:
        return None

    def finish_after_flush() -> None:
        if state.settings.is_slave:
            state.store.flush()
        finish()
        state.resets.offsets_saved(moved)

    return finish_after_flush


def _save_at_end(state: BrokerState) -> None:
    try:
        state.delays.close()
    except (MQError, OSError) as error:
        # The next start finds in the log what was delivered.
        _log.warning("delay offsets are not saved reason=%s", error)
    save_tables(state)


def save_tables(state: BrokerState) -> None:
    """Save what changed in topics, groups, offsets and orders, the log before what is told of it."""
    state.store.flush()
    # A master has saved its own at every change.
    for start_save in (state.topics.start_save, state.groups.start_save):
        if finish := start_save():
            finish()
    moved = state.resets.unsaved()
    state.offsets.save()
    state.resets.offsets_saved(moved)
    state.resets.save()
