"""Watches a broker's process from its start to its end, and tells the controllers of it."""

import asyncio
import logging
import signal
import sys
from functools import partial

from tanist.log import ProcessLog
from tanist.protocol.headers.controller import ReportDeadBrokerRequest
from tanist.remoting import RemotingClient, TlsSettings
from tanist.supervisor.death_report import DeathReport
from tanist.supervisor.forked import STOP_SIGNALS, ForkedBroker, fork_broker
from tanist.supervisor.settings import SupervisorSettings
from tanist.supervisor.watchdog import LOOK_S, Watchdog, WatchState

_log = logging.getLogger(__name__)


def supervise(settings: SupervisorSettings, *, tls: TlsSettings, process_log: ProcessLog) -> None:
    """Split this process in two: it returns in the child, which is to run the broker.

    The parent passes SIGTERM and SIGINT on, kills a broker that hangs, reports the end of it, and exits with
    its code. If the parent is killed, the child is too.
    """
    broker = fork_broker()
    if broker is None:
        return
    process_log.share()
    process_log.set_level(logging.INFO)
    with asyncio.Runner() as runner:
        sys.exit(runner.run(_supervise(broker, settings, tls)))


async def _supervise(broker: ForkedBroker, settings: SupervisorSettings, tls: TlsSettings) -> int:
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, partial(broker.send, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    client = RemotingClient(tls=tls)
    told = ReportDeadBrokerRequest(
        cluster_name=settings.broker_cluster_name,
        broker_name=settings.broker_name,
        session_id=broker.session_id,
    )
    report = DeathReport(told, settings.controllers, client)
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = [tasks.create_task(report.keep_ready())]
            if settings.broker_watchdog_mills:
                watching.append(tasks.create_task(_watch(broker, settings.broker_watchdog_mills / 1000)))
            await asyncio.to_thread(broker.wait)
            for task in watching:
                task.cancel()
            await report.send()
    finally:
        await client.close()
    code = broker.reap()
    _log.info("broker process ended pid=%d code=%d", broker.pid, code)
    return code


async def _watch(broker: ForkedBroker, limit_s: float) -> None:
    """Look after the pulse until there is none any more; kill a broker that hangs."""
    loop = asyncio.get_running_loop()
    watchdog = Watchdog(limit_s)
    state = watchdog.state
    while state in (WatchState.STARTING, WatchState.WATCHED):
        await asyncio.sleep(LOOK_S)
        state = watchdog.on_look(broker.look(), now_s=loop.time())
    if state is WatchState.HUNG:
        _log.error("broker hangs and is killed pid=%d silent_ms=%d", broker.pid, int(limit_s * 1000))
        broker.send(signal.SIGKILL)
