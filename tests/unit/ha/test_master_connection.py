import asyncio
import socket

import pytest

from tanist.ha.actions import CloseKind, CloseLink
from tanist.ha.classic_slave import ClassicSlaveLink
from tanist.ha.master_connection import MasterConnection, Received
from tanist.ha.record_walk import RecordWalk
from tanist.protocol.ha_classic import encode_report
from tanist.protocol.ha_link import AckKind

_LOG_END = 8192
_SMALL_BYTES = 4096


def _make_connection() -> MasterConnection:
    """A slave's end that reports all the time."""
    link = ClassicSlaveLink(
        log_end=_LOG_END,
        walk=RecordWalk(_LOG_END, file_bytes=4096),
        file_bytes=4096,
        ack_kind=AckKind.RECEIVED,
        now_s=asyncio.get_running_loop().time(),
        heartbeat_s=0.0,
        silence_s=60.0,
    )
    received = Received(
        append=lambda _log_offset, _body: 0,
        follow_log=lambda _incarnation: None,
        apply_table=None,
        when_flushed=lambda _log_offset, _done: None,
        on_read=lambda _size_bytes, _master_log_end: None,
        on_written=lambda: None,
    )
    return MasterConnection(link, received)


@pytest.mark.behaviour("S1-83", "S1-88")
def test_a_master_that_takes_no_reports_is_left_and_gets_no_half_of_one_and_then_another() -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BYTES)
            client = socket.create_connection(listener.getsockname())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SMALL_BYTES)
            master, _ = listener.accept()
        with master:
            loop = asyncio.get_running_loop()
            transport, connection = await loop.create_connection(_make_connection, sock=client)
            transport.set_write_buffer_limits(high=0)
            async with asyncio.timeout(30):
                closing = await connection.closed
            assert closing == CloseLink(CloseKind.LOST, f"HAClient, reportSlaveMaxOffset error, {_LOG_END}")
            transport.abort()
            master.setblocking(False)
            await asyncio.sleep(0)
            read = b""
            while True:
                try:
                    piece = master.recv(1 << 16)
                except (BlockingIOError, ConnectionResetError):
                    break
                if not piece:
                    break
                read += piece
        report = encode_report(_LOG_END)
        assert read == (report * (len(read) // 8 + 1))[: len(read)]

    asyncio.run(run())
