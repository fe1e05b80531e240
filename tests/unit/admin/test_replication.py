"""What an operator is told of a slave that is filled anew, from the answers that it gives meanwhile."""

import asyncio
from typing import cast

import pytest

from tanist.admin.replication import rebuild_slave
from tanist.client.session.wire import Wire
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.replication import HAClientView, HARuntimeInfo
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command


class _Answers:
    """A slave that stands so from one question to the next."""

    def __init__(self, *told: HARuntimeInfo) -> None:
        self._told = list(told)

    async def ask(self, _address: str, command: Command) -> Command:
        if command.code == RequestCode.REBUILD_SLAVE:
            return command.reply()
        return command.reply(body=encode_body(self._told.pop(0)))


def _told(started_ms: int, client: HAClientView) -> HARuntimeInfo:
    return HARuntimeInfo(is_master=False, role="SLAVE", started_ms=started_ms, client=client)


def test_a_slave_that_serves_and_does_not_follow_yet_is_not_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tanist.admin.replication._LOOK_S", 0)
    before, filling, filled = (
        _told(1, HAClientView(aside_count=0)),
        _told(2, HAClientView(aside_count=1)),
        _told(2, HAClientView(aside_count=0)),
    )
    answers = _Answers(before, _told(2, HAClientView()), filling, filled)

    async def looks() -> list[HARuntimeInfo]:
        return [found async for found in rebuild_slave(cast("Wire", answers), "a:1", before)]

    assert [found.client.aside_count for found in asyncio.run(looks())] == [1, 0]
