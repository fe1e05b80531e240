"""The parent of a broker with a coordinator, as a process: its broker is killed."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.coord import Create, Registry, open_registry
from tanist.model.reading import ReadRecord, alive_path, encode_record, read_record_path
from tanist.protocol import Command, RequestCode
from tanist.protocol.codes import Language
from tanist.protocol.frame import encode_command
from tanist.supervisor import SupervisorSettings
from tests.support.process import ForeignProcess
from tests.support.registries import until
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.supervised import BROKER_NAME, EXIT_CODE, supervised_command
from tests.support.zookeeper import Ensemble

pytestmark = pytest.mark.partner("java", "maven")

HOST = "127.0.0.1"
WAIT_S = 20.0
SESSION_MS = 10_000
"""Far more than the end of a presence takes."""
PULL = encode_command(Command(RequestCode.PULL_MESSAGE, language=Language.JAVA))


@dataclass(frozen=True)
class Supervised:
    """A supervisor, and the presence of its child: in a session of the test's, which lives on."""

    settings: SupervisorSettings
    parent: ForeignProcess
    registry: Registry

    @property
    def path(self) -> str:
        return alive_path(BROKER_NAME, self.settings.address)

    async def is_gone(self) -> bool:
        return await self.registry.read(self.path) is None

    async def read_from(self, reader: str) -> None:
        """Have this broker read in the place of the one that is supervised."""
        record = encode_record(ReadRecord(group=BROKER_NAME, term=1, reader=reader))
        await self.registry.commit(
            Create(read_record_path(BROKER_NAME), record), Create(alive_path(BROKER_NAME, reader), b"{}")
        )

    async def exit_code(self) -> int:
        return await asyncio.to_thread(self.parent.wait, timeout_s=WAIT_S)


@asynccontextmanager
async def supervised(directory: Path, zookeeper: Ensemble) -> AsyncGenerator[Supervised]:
    settings = SupervisorSettings(
        coordinator=f"zk://{zookeeper.hosts}/{directory.name}",
        coordinator_timeout_millis=SESSION_MS,
        broker_name=BROKER_NAME,
        listen_port=free_broker_port(),
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = supervised_command(settings)
    async with open_registry(settings.coordinator, timeout_s=SESSION_MS / 1000) as registry:
        with ForeignProcess("supervised", command, directory=directory, env=environment) as parent:
            for line in ("lives\n", "registry opened"):
                await asyncio.to_thread(parent.wait_for_output, line, timeout_s=WAIT_S)
            seen = Supervised(settings, parent, registry)
            token = next(line.split()[2] for line in parent.output().splitlines() if line.endswith("lives"))
            presence = b'{"token":"%b"}' % token.encode()
            await registry.commit(Create(seen.path, presence, is_ephemeral=True))
            yield seen


def test_the_presence_of_a_broker_that_is_killed_ends_at_once_and_its_callers_are_led_to_the_slave(
    tmp_path: Path, zookeeper: Ensemble
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(len(PULL)))
        await reader.read()
        writer.close()

    async def play() -> None:
        server = await asyncio.start_server(answer, HOST, 0)
        async with supervised(tmp_path, zookeeper) as seen, server:
            await seen.read_from(f"{HOST}:{server.sockets[0].getsockname()[1]}")
            killed_at_s = asyncio.get_running_loop().time()
            os.kill(seen.parent.children[0], signal.SIGKILL)
            await until(seen.is_gone)
            assert asyncio.get_running_loop().time() - killed_at_s < SESSION_MS / 2000

            await asyncio.to_thread(seen.parent.wait_for_output, "stand-in began", timeout_s=WAIT_S)
            reader, writer = await asyncio.open_connection(HOST, seen.settings.listen_port)
            writer.write(PULL)
            assert await reader.readexactly(len(PULL)) == PULL

            os.kill(seen.parent.pid, signal.SIGTERM)
            assert await seen.exit_code() == 128 + signal.SIGKILL
            writer.close()

    asyncio.run(play())


def test_nobody_stands_in_for_a_broker_that_was_told_to_stop(tmp_path: Path, zookeeper: Ensemble) -> None:
    async def play() -> None:
        async with supervised(tmp_path, zookeeper) as seen:
            await seen.read_from(f"{HOST}:1")
            os.kill(seen.parent.pid, signal.SIGTERM)
            assert await seen.exit_code() == EXIT_CODE
            assert await seen.is_gone()
            assert "stand-in" not in seen.parent.output()

    asyncio.run(play())
