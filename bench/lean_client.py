"""A client that costs next to nothing, in a process of its own: what it measures is the server.

It writes frames that were laid out before, but for the key of the message, on plain sockets, each once the
last one is answered; of a good answer it looks at the length and the code alone, of the first one that is
none it tells the text. So it speaks RocketMQ's remoting, Redis and NATS alike. It is told what to do as the
other clients of the benchmarks are: one step a line of input, as JSON.
"""

import re
import select
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from bench.figures import percentile
from tanist.model.property_names import UNIQ_KEY, WAIT
from tanist.protocol import Command, RequestCode, encode_command
from tanist.protocol.batch import encode_batch
from tanist.protocol.headers.send import SendMessageRequestV2
from tanist.protocol.properties import encode_properties

_READ_BYTES = 1 << 16
_QUEUES = 8
_STREAM_ENTRIES = 300_000
_WAIT_MS = 3_000
NATS_SUBJECT = "bench"
_KEY = b"0" * 32
"""Where the key goes: each message has one of its own, as those of stock producers have."""
_PROPERTIES = encode_properties({UNIQ_KEY: _KEY.decode(), WAIT: "true"})
_SILENCE_S = 10.0
"""What a server has not answered when it has said nothing for so long has failed."""
_REMARK = re.compile(rb'"remark":"([^"]*)"')
_SAID_BYTES = 200
BUCKET_S = 0.02
"""Sends are counted by spans of this length."""

Options: TypeAlias = dict[str, Any]
IsGood: TypeAlias = Callable[[bytes], bool | None]
"""Whether an answer is good; None while it is not whole."""
Greet: TypeAlias = Callable[[socket.socket, int], None]
"""What has to be said on a connection, the number of which is given, before the first message."""


class Load(msgspec.Struct, rename="camel"):
    """What came of one step. ``buckets`` counts the messages of each span of ``BUCKET_S``.

    Times are those of the clock that all processes of a machine share. The Java client does not tell them,
    nor ``first_failure``: what was said to the first message that failed.
    """

    count: int
    failures: int
    rate: float
    p50_micros: float
    p99_micros: float
    cpu_seconds: float = 0.0
    p999_micros: float = 0.0
    began_s: float = 0.0
    ended_s: float = 0.0
    buckets: list[int] = []
    first_failure: str = ""


class _Run:
    """All connections to one server, each with a frame of its own, which gets one key after another."""

    def __init__(
        self,
        address: str,
        frames: Sequence[bytes],
        is_good: IsGood,
        greet: Greet | None = None,
        *,
        silence_s: float = _SILENCE_S,
    ) -> None:
        self._is_good = is_good
        self._silence_s = silence_s
        self._failures = 0
        self._first_failure = ""
        self._ends_s: list[float] = []
        self._taken_s: list[float] = []
        host, _, port = address.rpartition(":")
        self._peers = [socket.create_connection((host, int(port))) for _ in frames]
        if greet is not None:
            for number, peer in enumerate(self._peers):
                greet(peer, number)
        self._frames = {
            peer.fileno(): frame.split(_KEY, 1) for peer, frame in zip(self._peers, frames, strict=True)
        }

    def close(self) -> None:
        for peer in self._peers:
            peer.close()

    def drive(self, *, duration_s: float, most: int, rate: float = 0.0) -> tuple[float, float]:
        """Send until the time is over or enough was sent, at a rate or as fast as it goes; begin and end.

        As long as every message was refused the time is not over: a rate of none would tell nothing. But that
        ends, too, as silence does.
        """
        for peer in self._peers:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began_s = time.perf_counter()
        if rate:
            self._send_when_due(began_s, min(int(rate * duration_s), most), rate)
        else:
            with select.epoll() as poll:
                for peer in self._peers:
                    poll.register(peer, select.EPOLLIN)
                self._send_in_turn(poll, began_s + duration_s, most)
        if not self._ends_s:
            raise ConnectionError(
                f"the server has taken none of {self._failures} messages: {self._first_failure}"
            )
        return began_s, self._ends_s[-1]

    def _send_in_turn(self, poll: select.epoll, end_s: float, most: int) -> None:
        """The loop that all of this is about; so what it needs is in local names."""
        now, wait, is_good, frames = time.perf_counter, poll.poll, self._is_good, self._frames
        silence_s, ends_s = self._silence_s, self._ends_s
        receive = {peer.fileno(): peer.recv for peer in self._peers}
        send = {peer.fileno(): peer.sendall for peer in self._peers}
        add_end, add_taken = ends_s.append, self._taken_s.append
        parts: dict[int, bytes] = {}
        began: dict[int, float] = {}
        sent = under_way = 0
        for number, (head, tail) in frames.items():
            sent += 1
            under_way += 1
            began[number] = now()
            send[number](b"%b%032X%b" % (head, sent, tail))
        while under_way:
            if not (events := wait(silence_s)):
                self._on_failure(f"no answer within {silence_s:g} s", under_way)
                return
            for number, _event in events:
                data = receive[number](_READ_BYTES)
                if not data:
                    raise ConnectionError("the server has closed the connection")
                if parts:
                    data = parts.pop(number, b"") + data
                good = is_good(data)
                if good is None:
                    parts[number] = data
                    continue
                at = now()
                if good:
                    add_end(at)
                    add_taken(at - began[number])
                else:
                    self._on_failure(_said(data))
                if (at < end_s or (not ends_s and at < end_s + silence_s)) and sent < most:
                    sent += 1
                    began[number] = at
                    head, tail = frames[number]
                    send[number](b"%b%032X%b" % (head, sent, tail))
                else:
                    under_way -= 1

    def _send_when_due(self, began_s: float, count: int, rate: float) -> None:
        """Each message goes on a connection that waits for no answer, if there is one.

        Its time begins when it was due: what has to wait for a slow server counts.
        """
        idle, due_s = list(self._peers), dict[socket.socket, float]()
        sent = 0
        while sent < count or due_s:
            now_s = time.perf_counter()
            while idle and sent < count and (next_s := began_s + sent / rate) <= now_s:
                sent += 1
                due_s[peer := idle.pop()] = next_s
                head, tail = self._frames[peer.fileno()]
                peer.sendall(b"%b%032X%b" % (head, sent, tail))
            is_next = bool(idle) and sent < count
            wait_s = max(began_s + sent / rate - now_s, 0.0) if is_next else self._silence_s
            # Not epoll, which waits for whole milliseconds.
            readable, _, _ = select.select(due_s, [], [], wait_s)
            if not readable and not is_next:
                self._on_failure(f"no answer within {self._silence_s:g} s", len(due_s))
                return
            for peer in readable:
                self._take(peer, due_s.pop(peer))
            idle += readable

    def _take(self, peer: socket.socket, due_s: float) -> None:
        """The answer to a message that was due then."""
        data = b""
        while (good := self._is_good(data)) is None:
            if not (more := peer.recv(_READ_BYTES)):
                raise ConnectionError("the server has closed the connection")
            data += more
        if not good:
            self._on_failure(_said(data))
            return
        self._ends_s.append(time.perf_counter())
        self._taken_s.append(self._ends_s[-1] - due_s)

    def _on_failure(self, why: str, count: int = 1) -> None:
        self._failures += count
        self._first_failure = self._first_failure or why

    def load(self, began_s: float, ended_s: float, *, batch: int, cpu_s: float) -> Load:
        buckets = [0] * (int((ended_s - began_s) / BUCKET_S) + 1)
        for at in self._ends_s:
            buckets[int((at - began_s) / BUCKET_S)] += batch
        count = len(self._ends_s) * batch
        return Load(
            count=count,
            failures=self._failures,
            rate=count / (ended_s - began_s),
            p50_micros=percentile(self._taken_s, 0.5) * 1e6,
            p99_micros=percentile(self._taken_s, 0.99) * 1e6,
            p999_micros=percentile(self._taken_s, 0.999) * 1e6,
            cpu_seconds=cpu_s,
            began_s=began_s,
            ended_s=ended_s,
            buckets=buckets,
            first_failure=self._first_failure,
        )


def _send(options: Options) -> Load:
    """Send for ``durationMs``, or ``most`` messages if these are fewer, on so many ``connections``.

    So many a second as ``rate`` says, or as fast as it goes.
    """
    body = bytes(number % 256 for number in range(options["bodyBytes"]))
    batch = options.get("batch", 1)
    numbers = range(options["connections"])
    greet: Greet | None = None
    match options["kind"]:
        case "redis":
            frames, is_good = [_stream_frame(body)] * len(numbers), _is_good_by_redis
        case "nats":
            frames, is_good = [_publish_frame(number, body) for number in numbers], _is_good_by_nats
            greet = _greet_nats
        case _:
            queues = options.get("queues", _QUEUES)
            requests = (
                send_request(options["topic"], number % queues, body, batch=batch) for number in numbers
            )
            frames, is_good = [encode_command(request) for request in requests], _is_good_by_remoting
    run = _Run(options["address"], frames, is_good, greet)
    try:
        cpu_s = time.process_time()
        began_s, ended_s = run.drive(
            duration_s=options["durationMs"] / 1000,
            most=-(-options.get("most", sys.maxsize) // batch),
            rate=options.get("rate", 0.0),
        )
        return run.load(began_s, ended_s, batch=batch, cpu_s=time.process_time() - cpu_s)
    finally:
        run.close()


def send_request(topic: str, queue_id: int, body: bytes, *, batch: int = 1) -> Command:
    """A message, or a batch of the same one; the topic is made if it is not there."""
    header = SendMessageRequestV2(
        producer_group="lean",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_count=_QUEUES,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp_ms=int(time.time() * 1000),
        flag=0,
        properties=None if batch > 1 else _PROPERTIES.decode(),
        is_batch=batch > 1,
    )
    if batch == 1:
        return Command.request(RequestCode.SEND_MESSAGE_V2, header, body=body)
    items = encode_batch([(0, body, _PROPERTIES)] * batch)
    return Command.request(RequestCode.SEND_BATCH_MESSAGE, header, body=items)


def _is_good_by_remoting(data: bytes) -> bool | None:
    if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        return None
    return b'"code":0,' in data


def _said(answer: bytes) -> str:
    """What can be read of an answer: the remark of a remoting server, the beginning of any other."""
    found = _REMARK.search(answer)
    return (found[1] if found else answer[:_SAID_BYTES]).decode(errors="replace").strip()


def _stream_frame(body: bytes) -> bytes:
    """An entry of a stream that is kept short, and the wait for one replica."""
    entry = (b"*", b"key", _KEY, b"body", body)
    words = (b"XADD", b"bench", b"MAXLEN", b"~", b"%d" % _STREAM_ENTRIES, *entry)
    return redis_command(*words) + redis_command(b"WAIT", b"1", b"%d" % _WAIT_MS)


def redis_command(*words: bytes) -> bytes:
    """A command as Redis takes it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def _is_good_by_redis(data: bytes) -> bool | None:
    """The id of the entry, then the number of replicas that have it."""
    if data.count(b"\r\n") < 3:
        return None
    return data.endswith(b":1\r\n")


def _greet_nats(peer: socket.socket, number: int) -> None:
    """Have the answers of this connection's messages come here, and wait until that is known."""
    peer.sendall(b'CONNECT {"verbose":false}\r\nSUB acks.%d 1\r\nPING\r\n' % number)
    said = b""
    while not said.endswith(b"PONG\r\n"):
        said += peer.recv(_READ_BYTES)


def _publish_frame(number: int, body: bytes) -> bytes:
    """A message of the stream with the key before its body, and where its answer goes."""
    head = b"PUB %b acks.%d %d\r\n" % (NATS_SUBJECT.encode(), number, len(_KEY) + len(body))
    return head + _KEY + body + b"\r\n"


def _is_good_by_nats(data: bytes) -> bool | None:
    """``MSG``, the subject and the length in a line, then JSON with the message's place in the stream."""
    if data.count(b"\r\n") < 2 or not data.endswith(b"\r\n"):
        return None
    return b'"seq"' in data


def main() -> None:
    for line in sys.stdin.buffer:
        options: Options = msgspec.json.decode(line)
        try:
            answer: Options = {"result": _send(options)}
        except Exception as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
