"""The lane within a whole broker, over TCP."""

import re
import socket

import pytest

from tanist.broker.quick_send import QuickSends
from tanist.protocol import Command
from tanist.remoting import Connection
from tanist.testing import EmbeddedBroker
from tests.support.lane_scene import QUEUES, TOPIC, frame_of, header_of

pytestmark = pytest.mark.partner("native")
pytest.importorskip("tanist.broker._engine")

OUTER_QUEUE, INNER_QUEUE, OWN_QUEUE = 3, 2, 0


def connect(broker: EmbeddedBroker) -> socket.socket:
    host, _, port = broker.address.rpartition(":")
    peer = socket.create_connection((host, int(port)), timeout=10)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def read_frame(peer: socket.socket) -> bytes:
    received = b""
    while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
        data = peer.recv(1 << 16)
        assert data, "the broker closed the connection"
        received += data
    return received


def send(peer: socket.socket, queue_id: int) -> bytes:
    peer.sendall(frame_of(header_of(e=str(queue_id)), b"body"))
    return read_frame(peer)


def offset_in(answer: bytes) -> int:
    found = re.search(rb'"queueOffset":"(\d+)"', answer)
    assert found is not None, answer
    return int(found[1])


def test_a_flood_of_one_way_sends_is_taken_in_order_and_by_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    in_python = 0
    take = QuickSends.take

    def counted(quick: QuickSends, command: Command, connection: Connection) -> bytes | None:
        nonlocal in_python
        in_python += 1
        return take(quick, command, connection)

    monkeypatch.setattr(QuickSends, "take", counted)
    one_way = frame_of(header_of(flag=2, e=str(OWN_QUEUE)), bytes(1024))
    count = 2000
    with EmbeddedBroker(topics={TOPIC: QUEUES}) as broker, connect(broker) as peer:
        first = offset_in(send(peer, OWN_QUEUE))
        # Far more than a read or a window of the log has room for.
        peer.sendall(one_way * count)
        assert offset_in(send(peer, OWN_QUEUE)) == first + count + 1
        assert in_python < count / 4


def test_the_first_frame_may_be_cut_anywhere() -> None:
    inner = frame_of(header_of(e=str(INNER_QUEUE), opaque=666), b"inner")
    outer = frame_of(header_of(e=str(OUTER_QUEUE), opaque=8), b"outer" + inner)
    at = len(outer) - len(inner)
    cuts = [*range(1, 10), *range(10, at, 41), *range(at - 4, at + 9), *range(len(outer) - 5, len(outer))]
    with EmbeddedBroker(topics={TOPIC: QUEUES}) as broker, connect(broker) as other:
        # Known queues: so that the lane would take what looks like a send.
        first = [offset_in(send(other, queue_id)) for queue_id in (OUTER_QUEUE, INNER_QUEUE)]
        for cut in cuts:
            with connect(broker) as peer:
                peer.sendall(outer[:cut])
                # What another connection asks later is answered later, so then the piece was read.
                for _ in range(3):
                    send(other, OWN_QUEUE)
                peer.sendall(outer[cut:])
                assert b'"opaque":8' in read_frame(peer), cut
        last = [offset_in(send(other, queue_id)) for queue_id in (OUTER_QUEUE, INNER_QUEUE)]
        assert [last[0] - first[0], last[1] - first[1]] == [len(cuts) + 1, 1]
