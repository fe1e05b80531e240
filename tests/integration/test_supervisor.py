"""The parent of a broker sees it end or hang, tells all controllers, and takes it along when it goes."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tanist.protocol import Command, RequestCode
from tanist.protocol.headers.controller import ReportDeadBrokerRequest
from tanist.remoting import Connection, Handler, RemotingServer
from tanist.supervisor import SupervisorSettings
from tests.support.conditions import until
from tests.support.process import ForeignProcess
from tests.support.remoting import serving
from tests.support.requests import NO_NAME_SERVER
from tests.support.supervised import BROKER_NAME, CLUSTER, EXIT_CODE, supervised_command
from tests.support.tanist_cluster import BrokerProcess, broker_command

WATCHDOG_MS = 500
WAIT_S = 20.0
PROMPT_S = 1.0
"""Far more than a report takes, and less than any timeout."""


@dataclass
class PlayedController:
    """Answers whether it is there, and keeps the reports it gets."""

    server: RemotingServer = field(init=False)
    asked: int = 0
    reports: list[tuple[float, ReportDeadBrokerRequest]] = field(
        default_factory=list[tuple[float, ReportDeadBrokerRequest]]
    )
    """When each came, and what it says."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    @property
    def handlers(self) -> dict[int, Handler]:
        return {
            RequestCode.CONTROLLER_GET_METADATA_INFO: self._on_question,
            RequestCode.CONTROLLER_REPORT_DEAD_BROKER: self._on_report,
        }

    def _on_question(self, request: Command, _connection: Connection) -> Command:
        self.asked += 1
        return request.reply()

    def _on_report(self, request: Command, _connection: Connection) -> Command:
        report = request.header(ReportDeadBrokerRequest)
        self.reports.append((asyncio.get_running_loop().time(), report))
        return request.reply()


@dataclass(frozen=True)
class Supervised:
    parent: ForeignProcess
    controllers: list[PlayedController]

    @property
    def child(self) -> int:
        return int(self._told[1])

    @property
    def session_id(self) -> str:
        return self._told[2]

    @property
    def is_child_alive(self) -> bool:
        with suppress(ProcessLookupError):
            os.kill(self.child, 0)
            return True
        return False

    async def reported_at_s(self) -> float:
        """When the last of the controllers was told that the broker is gone."""
        await until(lambda: all(controller.reports for controller in self.controllers), timeout_s=WAIT_S)
        reports = [controller.reports[0] for controller in self.controllers]
        expected = ReportDeadBrokerRequest(
            cluster_name=CLUSTER, broker_name=BROKER_NAME, session_id=self.session_id
        )
        assert all(report == expected for _, report in reports)
        return max(at_s for at_s, _ in reports)

    async def exit_code(self) -> int:
        return await asyncio.to_thread(self.parent.wait, timeout_s=WAIT_S)

    @property
    def _told(self) -> list[str]:
        return next(line.split() for line in self.parent.output().splitlines() if line.endswith("lives"))


@asynccontextmanager
async def supervised(
    directory: Path, *, watchdog_ms: int, others: tuple[str, ...]
) -> AsyncGenerator[Supervised]:
    """A supervisor with connections to two controllers, and its child. ``others`` are more controllers."""
    async with AsyncExitStack() as stack:
        controllers = [PlayedController(), PlayedController()]
        for controller in controllers:
            controller.server = await stack.enter_async_context(serving(controller.handlers))
        addresses = ";".join([controller.address for controller in controllers] + list(others))
        settings = SupervisorSettings(
            enable_controller_mode=True,
            controller_addr=addresses,
            broker_cluster_name=CLUSTER,
            broker_name=BROKER_NAME,
            broker_watchdog_mills=watchdog_ms,
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        parent = stack.enter_context(
            ForeignProcess("supervised", supervised_command(settings), directory=directory, env=environment)
        )
        await asyncio.to_thread(parent.wait_for_output, "lives\n", timeout_s=WAIT_S)
        await until(lambda: all(controller.asked for controller in controllers), timeout_s=WAIT_S)
        yield Supervised(parent, controllers)


def run(
    directory: Path,
    scenario: Callable[[Supervised], Awaitable[None]],
    *,
    watchdog_ms: int = WATCHDOG_MS,
    others: tuple[str, ...] = (),
) -> None:
    async def play() -> None:
        async with supervised(directory, watchdog_ms=watchdog_ms, others=others) as seen:
            await scenario(seen)

    asyncio.run(play())


def test_all_controllers_hear_at_once_of_a_broker_that_is_killed(tmp_path: Path) -> None:
    async def scenario(seen: Supervised) -> None:
        killed_at_s = asyncio.get_running_loop().time()
        os.kill(seen.child, signal.SIGKILL)
        assert await seen.reported_at_s() - killed_at_s < PROMPT_S
        assert await seen.exit_code() == 128 + signal.SIGKILL

    run(tmp_path, scenario)


def test_a_broker_that_hangs_is_killed_and_reported(tmp_path: Path) -> None:
    async def scenario(seen: Supervised) -> None:
        stopped_at_s = asyncio.get_running_loop().time()
        os.kill(seen.child, signal.SIGSTOP)
        # Its last beat may have come up to two looks before.
        assert await seen.reported_at_s() - stopped_at_s > WATCHDOG_MS / 1000 - 0.2
        assert await seen.exit_code() == 128 + signal.SIGKILL
        assert "broker hangs and is killed" in seen.parent.output()

    run(tmp_path, scenario)


def test_a_broker_that_is_told_to_stop_ends_its_way_and_is_reported_too(tmp_path: Path) -> None:
    async def scenario(seen: Supervised) -> None:
        os.kill(seen.parent.pid, signal.SIGTERM)
        await seen.reported_at_s()
        assert await seen.exit_code() == EXIT_CODE

    run(tmp_path, scenario)


def test_a_supervisor_that_is_killed_takes_its_broker_along(tmp_path: Path) -> None:
    async def scenario(seen: Supervised) -> None:
        child = seen.child
        seen.parent.kill()
        await until(lambda: not seen.is_child_alive or is_zombie(child), timeout_s=WAIT_S)

    run(tmp_path, scenario)


def test_without_a_watchdog_a_broker_may_stand_still(tmp_path: Path) -> None:
    async def scenario(seen: Supervised) -> None:
        os.kill(seen.child, signal.SIGSTOP)
        asked = [controller.asked for controller in seen.controllers]
        await until(
            lambda: all(c.asked > before + 1 for c, before in zip(seen.controllers, asked, strict=True)),
            timeout_s=WAIT_S,
        )
        assert seen.parent.is_running
        assert not seen.controllers[0].reports

    run(tmp_path, scenario, watchdog_ms=0)


def test_a_controller_that_is_not_there_keeps_the_others_waiting_for_nothing(tmp_path: Path) -> None:
    async def scenario(seen: Supervised) -> None:
        killed_at_s = asyncio.get_running_loop().time()
        os.kill(seen.child, signal.SIGKILL)
        assert await seen.reported_at_s() - killed_at_s < PROMPT_S
        assert await seen.exit_code() == 128 + signal.SIGKILL
        assert "death not reported controller=127.0.0.1:1" in seen.parent.output()

    run(tmp_path, scenario, others=("127.0.0.1:1",))


def test_a_broker_in_controller_mode_has_a_supervisor_and_one_with_a_fixed_role_has_none(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        controller = PlayedController()
        async with serving(controller.handlers) as controller.server:
            config = tmp_path / "broker.conf"
            config.write_text(
                f"enableControllerMode=true\ncontrollerAddr={controller.address}\nlistenPort=0\n"
                f"storePathRootDir={tmp_path / 'store'}\nbrokerName=x\n"
            )
            with ForeignProcess("broker", broker_command("-c", config), directory=tmp_path) as parent:
                await until(lambda: bool(parent.children) and controller.asked > 0, timeout_s=WAIT_S)
                os.kill(parent.children[0], signal.SIGKILL)
                await until(lambda: bool(controller.reports), timeout_s=WAIT_S)
                assert controller.reports[0][1].broker_name == "x"

    asyncio.run(play())
    with BrokerProcess(tmp_path / "fixed", NO_NAME_SERVER) as broker:
        assert broker.process.children == []


def test_the_parent_does_not_import_the_broker() -> None:
    script = "import sys; import tanist.cli.broker; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=WAIT_S
    ).stdout.split()
    assert "tanist.supervisor" in modules
    assert not {"tanist.broker", "tanist.store"}.intersection(modules)


def is_zombie(pid: int) -> bool:
    """Whether a process is dead, and nobody has asked how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
