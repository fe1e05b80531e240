"""What the parent of a broker with a coordinator does over its own session with a controller's registry."""

import asyncio
from pathlib import Path

from tanist.controller import Controller, ControllerSettings
from tanist.coord import Create, open_registry
from tanist.model.reading import alive_path
from tanist.remoting import TlsMode, TlsSettings
from tanist.supervisor import SupervisorSettings
from tanist.supervisor.duties import open_duty
from tests.support.tls import certificate, key

SERVING = TlsSettings(
    tls_mode=TlsMode.ENFORCING, tls_server_cert_path=certificate("server"), tls_server_key_path=key("server")
)
CALLING = TlsSettings(
    tls_enable=True, tls_client_auth_server=True, tls_client_trust_cert_path=certificate("ca")
)


def test_the_presence_of_a_dead_broker_is_ended_also_where_the_controller_wants_tls(tmp_path: Path) -> None:
    async def play() -> None:
        given = ControllerSettings(listen_port=0, controller_store_path=str(tmp_path))
        controller = Controller(given, tls=SERVING)
        async with controller.serving():
            settings = SupervisorSettings(coordinator=f"tanist://{controller.address}", broker_name="a")
            path = alive_path("a", settings.address)
            async with (
                open_registry(settings.coordinator, tls=CALLING) as registry,
                open_duty(settings, CALLING, session_id="mine") as duty,
                asyncio.TaskGroup() as tasks,
            ):
                await registry.commit(Create(path, b'{"token":"mine"}', is_ephemeral=True))
                ready = tasks.create_task(duty.keep_ready())
                await duty.tell()
                assert await registry.read(path) is None
                ready.cancel()

    asyncio.run(asyncio.wait_for(play(), 60))
