import asyncio
import socket

import pytest

from tanist.ha.wire import HIGH_WATER_BYTES, Wire
from tests.support.fake_transport import FakeTransport

_PIECES = [bytes([number]) * size for number, size in enumerate((1, 12, 300_000, 7, 200_000, 65_536))]


class _Peer(asyncio.Protocol):
    """Counts how often it is told to stop and to go on."""

    def __init__(self) -> None:
        self.pauses: list[bool] = []

    def pause_writing(self) -> None:
        self.pauses.append(True)

    def resume_writing(self) -> None:
        self.pauses.append(False)


def test_what_the_system_does_not_take_at_once_follows_in_order() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            ours = socket.create_connection(listener.getsockname())
            theirs, _ = listener.accept()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        theirs.setblocking(False)
        transport, peer = await loop.create_connection(_Peer, sock=ours)
        wire = Wire(transport)
        sizes = [
            wire.send([memoryview(first), second])
            for first, second in zip(_PIECES[::2], _PIECES[1::2], strict=True)
        ]
        assert sum(sizes) == sum(map(len, _PIECES))
        # More than is to wait here: who sends is told.
        assert transport.get_write_buffer_size() > HIGH_WATER_BYTES
        assert peer.pauses == [True]
        wire.close()
        read = b""
        async with asyncio.timeout(10):
            while piece := await loop.sock_recv(theirs, 1 << 16):
                read += piece
        assert read == b"".join(_PIECES)
        assert peer.pauses == [True, False]
        theirs.close()

    asyncio.run(run())


def test_nothing_is_sent_once_it_closes() -> None:
    transport = FakeTransport()
    wire = Wire(transport)
    assert wire.send((b"head", memoryview(b"body"))) == 8
    wire.close()
    assert wire.send((b"more",)) == 4
    assert transport.written == b"headbody"


@pytest.mark.parametrize(
    ("peername", "name"),
    [
        (("10.0.0.7", 40112), "10.0.0.7:40112"),
        (("fd00::7", 40112, 0, 0), "[fd00::7]:40112"),
        (("::ffff:10.0.0.7", 1, 0, 0), "[::ffff:10.0.0.7]:1"),
        (None, "?:0"),
    ],
)
def test_a_peer_is_named_by_host_and_port(peername: tuple[str, int] | None, name: str) -> None:
    assert Wire(FakeTransport(peername)).peer == name
