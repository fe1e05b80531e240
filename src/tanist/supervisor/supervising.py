"""Watches a broker's process from its start to its end, and does what is due then."""

import asyncio
import logging
import signal
import sys
from functools import partial

from tanist.log import ProcessLog
from tanist.remoting import TlsSettings
from tanist.supervisor.duties import open_duty
from tanist.supervisor.forked import STOP_SIGNALS, ForkedBroker, fork_broker
from tanist.supervisor.settings import SupervisorSettings
from tanist.supervisor.watchdog import LOOK_S, Pulse, Watchdog, WatchState

_log = logging.getLogger(__name__)


def supervise(settings: SupervisorSettings, *, tls: TlsSettings, process_log: ProcessLog) -> None:
    """Split this process in two: it returns in the child, which is to run the broker.

    The parent passes SIGTERM and SIGINT on, kills a broker that hangs, tells of the end of it, stands in for
    a master that died, and exits with its code. If the parent is killed, the child is too.
    """
    broker = fork_broker()
    if broker is None:
        return
    process_log.share()
    process_log.set_level(logging.INFO)
    with asyncio.Runner() as runner:
        sys.exit(runner.run(_supervise(broker, settings, tls)))


async def _supervise(broker: ForkedBroker, settings: SupervisorSettings, tls: TlsSettings) -> int:
    stop = _Stop(broker)
    watchdog = Watchdog(settings.broker_watchdog_mills / 1000)
    async with (
        open_duty(settings, tls, session_id=broker.session_id) as duty,
        asyncio.TaskGroup() as tasks,
    ):
        ready = tasks.create_task(duty.keep_ready())
        watching = tasks.create_task(_watch(broker, watchdog))
        await asyncio.to_thread(broker.wait)
        watching.cancel()
        await duty.tell()
        has_served = watchdog.state is not WatchState.STARTING or broker.look() is Pulse.BEAT
        code = stop.reap()
        _log.info("broker process ended pid=%d code=%d", broker.pid, code)
        if code and has_served and not stop.asked.is_set():
            await duty.stand_in(stop.asked)
        ready.cancel()
    return code


class _Stop:
    """What a signal to stop does: it is the broker's as long as there is one, and then ours."""

    def __init__(self, broker: ForkedBroker) -> None:
        self.asked = asyncio.Event()
        self._broker = broker
        self._is_reaped = False
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, partial(self._on_signal, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def reap(self) -> int:
        """How the broker's process ended. Its number may be another's from now on, and gets no signals."""
        self._is_reaped = True
        return self._broker.reap()

    def _on_signal(self, number: signal.Signals) -> None:
        self.asked.set()
        if not self._is_reaped:
            self._broker.send(number)


async def _watch(broker: ForkedBroker, watchdog: Watchdog) -> None:
    """Look after the pulse until there is none any more; kill a broker that hangs."""
    if not watchdog.limit_s:
        return
    loop = asyncio.get_running_loop()
    state = watchdog.state
    while state in (WatchState.STARTING, WatchState.WATCHED):
        await asyncio.sleep(LOOK_S)
        state = watchdog.on_look(broker.look(), now_s=loop.time())
    if state is WatchState.HUNG:
        _log.error("broker hangs and is killed pid=%d silent_ms=%d", broker.pid, int(watchdog.limit_s * 1000))
        broker.send(signal.SIGKILL)
