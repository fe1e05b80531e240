"""What Python decides for the lane. What the lane does is in tests/integration/test_lane.py."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tanist.broker.handlers.send import SendHandler
from tanist.broker.lane import SendLane, make_lane
from tanist.model.host import PACKED_V4_BYTES, PACKED_V6_BYTES
from tests.support.conditions import until
from tests.support.lane_scene import HOST, PlayedConnection, PlayedWire
from tests.support.messages import make_message
from tests.support.working_broker import working_broker

pytestmark = pytest.mark.partner("native")
pytest.importorskip("tanist.broker._engine")


async def _hand_over(lane: SendLane, *, before: Callable[[], object]) -> None:
    """Have the lane read what is for Python, three times, and close it."""
    near, far = socket.socketpair()
    with near, far:
        connection: Any = PlayedConnection()
        lane.join(connection, cast("Any", PlayedWire()), near.fileno(), HOST, 0)
        for count in (1, 2, 3):
            before()
            far.sendall(b"none")
            await until(lambda count=count: len(connection.handed) == count)
        lane.close()


def test_a_broker_with_an_ipv6_host_has_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            broker.state.store_host = bytes(PACKED_V6_BYTES)
            assert make_lane(broker.state) is None

    asyncio.run(scenario())


def test_rules_that_c_refuses_are_told_once_and_everything_is_for_python(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            broker.state.store_host = bytes(PACKED_V4_BYTES)
            lane = make_lane(broker.state)
            assert lane is not None
            broker.state.store_host = bytes(PACKED_V6_BYTES)
            lane.serve(SendHandler(broker.state).quick)
            await _hand_over(lane, before=lambda: None)
            assert caplog.text.count("without the lane") == 1

    asyncio.run(scenario())


def test_while_the_log_grows_by_what_is_not_for_c_nobody_makes_room_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            broker.state.store_host = bytes(PACKED_V4_BYTES)
            lane, log = make_lane(broker.state), broker.state.store.log
            assert lane is not None
            lane.serve(SendHandler(broker.state).quick)
            asked: list[int] = []
            monkeypatch.setattr(log, "window", lambda: asked.append(log.log_end))
            await _hand_over(lane, before=lambda: broker.state.writer.append(make_message(body_bytes=3000)))
            assert asked == []

    asyncio.run(scenario())
