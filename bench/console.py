"""The console beside a broker with 200 topics and 200 groups: its pages, its memory, and what it asks.

Whether viewers slow the broker down is measured as the time that the broker works: with one page that lies
open, for which the console looks every two seconds, and with many viewers who load pages all the time; and as
the time that one send takes, with viewers and without.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.console_viewers import VIEWERS, Viewer, busy_viewers, sender_rows
from bench.processes import cpu_s
from bench.table import Row
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import encode_body
from tanist.protocol.headers.offsets import UpdateConsumerOffsetRequest
from tanist.protocol.headers.send import ConsumerSendBackRequest, SendMessageResponse
from tanist.protocol.headers.topics import UpdateTopicRequest
from tanist.protocol.message_id import decode_offset_id
from tests.support.console_process import ConsoleProcess
from tests.support.nameserver import NameServerProcess
from tests.support.requests import send_request
from tests.support.tanist_cluster import BrokerProcess
from tests.support.wire import Wire

_COUNT, _QUEUES = 200, 8
_ROUNDS = 7
_PAGES = ("/", "/brokers", "/replication", "/topics", "/groups", "/topics/t1", "/groups/g1", "/alarms")
"""What viewers load all the time."""
_SEARCHED = 500
"""So many messages are looked through."""
_GIVEN_UP = 200
"""So many of them are dead letters of one group."""
_MAX_PAGE_MS = 200.0
_MAX_MIB = 120.0
_MAX_CALLS = 12
_WINDOW_S = 12.0
_MAX_MORE_WORK = 0.05
"""Of one core: so much more the broker may work for all these viewers."""


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="tanist-bench-") as folder:
        home = Path(folder)
        with (
            NameServerProcess(home / "names") as names,
            BrokerProcess(home / "broker", names.address, name="broker-a") as broker,
        ):
            _fill(broker.address)
            message_ids = _send(broker.address)
            _give_up(broker.address, message_ids[:_GIVEN_UP])
            with ConsoleProcess(home, names.address) as console:
                return _measure(home, console, broker, message_ids)


def _fill(address: str) -> None:
    with Wire(address) as wire:
        for number in range(_COUNT):
            topic = UpdateTopicRequest(
                topic=f"t{number}",
                default_topic="TBW102",
                read_queue_count=_QUEUES,
                write_queue_count=_QUEUES,
                perm=6,
                topic_filter_type="SINGLE_TAG",
            )
            group = encode_body(SubscriptionGroupConfig(group_name=f"g{number}"))
            commands = [
                Command.request(RequestCode.UPDATE_AND_CREATE_TOPIC, topic),
                Command.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group),
            ]
            for queue_id in range(_QUEUES):
                offset = UpdateConsumerOffsetRequest(
                    consumer_group=f"g{number}",
                    topic=f"t{number}",
                    queue_id=queue_id,
                    consumer_offset=QueueOffset(0),
                )
                commands.append(Command.request(RequestCode.UPDATE_CONSUMER_OFFSET, offset))
            for command in commands:
                assert wire.ask(command).code == ResponseCode.SUCCESS


def _send(address: str) -> list[str]:
    """Messages to be searched; the ids of their places."""
    with Wire(address) as wire:
        return [
            wire.ask(send_request(b"...", topic="t1", properties=f"KEYS\x01k{number}\x02"))
            .header(SendMessageResponse)
            .msg_id
            for number in range(_SEARCHED)
        ]


def _give_up(address: str, message_ids: Sequence[str]) -> None:
    """Make them dead letters, as a consumer does that wants them never again."""
    with Wire(address) as wire:
        for message_id in message_ids:
            header = ConsumerSendBackRequest(
                log_offset=decode_offset_id(message_id).log_offset,
                group="g1",
                delay_level=-1,
                origin_topic="t1",
            )
            command = Command.request(RequestCode.CONSUMER_SEND_MSG_BACK, header)
            assert wire.ask(command).code == ResponseCode.SUCCESS


def _measure(
    home: Path, console: ConsoleProcess, broker: BrokerProcess, message_ids: Sequence[str]
) -> list[Row]:
    viewer = Viewer(console)
    while len(viewer.json("/groups")["groups"]) < _COUNT:
        time.sleep(0.2)
    once = {
        "/slave-consumption": ["/slave-consumption"] * _ROUNDS,
        "/dead-letters": ["/dead-letters"] * _ROUNDS,
        "/dead-letters/GROUP": ["/dead-letters/g1"] * _ROUNDS,
        "/resets": ["/resets"] * _ROUNDS,
        "/brokers/ADDRESS": [f"/brokers/{broker.address}"] * _ROUNDS,
        # Each time another question: an answer is kept for a moment.
        "/messages by key": [f"/messages?topic=t1&key=k{number}" for number in range(_ROUNDS)],
        "/messages by time": [f"/messages?topic=t1&begin=-{1 + number}h" for number in range(_ROUNDS)],
        "/messages/ID": [f"/messages/{message_id}" for message_id in message_ids[:_ROUNDS]],
    }
    rows = [_page_row(viewer, path, [path] * _ROUNDS) for path in _PAGES]
    rows += [_page_row(viewer, name, paths) for name, paths in once.items()]
    calls = _most_calls(viewer)
    rows.append(_row("questions of one look, most", f"{calls}", f"≤ {_MAX_CALLS}", calls <= _MAX_CALLS))

    idle = _broker_work(broker)
    with busy_viewers(console, _PAGES) as loaded:
        busy = _broker_work(broker)
    more = busy - idle
    rows.append(
        Row(
            f"broker's work, {VIEWERS} viewers beside one",
            f"{busy:.1%} of a core, {loaded()} pages",
            f"{idle:.1%} of a core",
            None,
            f"≤ {_MAX_MORE_WORK:.0%} more",
            more <= _MAX_MORE_WORK,
        )
    )
    rows += sender_rows(home, console, broker.address, _PAGES)
    mib = _most_mib(console.process.pid)
    target = f"≤ {_MAX_MIB:.0f} MiB"
    rows.append(_row("memory of the console, most", f"{mib:.0f} MiB", target, mib <= _MAX_MIB))
    return rows


def _most_mib(pid: int) -> float:
    """The most memory that a process ever held, as Linux counts it."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def _most_calls(viewer: Viewer) -> int:
    """Over a thorough look and the quick ones between."""
    most = 0
    for _ in range(24):
        most = max(most, viewer.json("/overview")["callCount"])
        time.sleep(0.5)
    return most


def _page_row(viewer: Viewer, name: str, paths: Sequence[str]) -> Row:
    times = [viewer.load(path) for path in paths]
    median = statistics.median(times)
    shown = f"{median:.0f} ms, at most {max(times):.0f} ms"
    return _row(f"page {name}", shown, f"≤ {_MAX_PAGE_MS:.0f} ms", median <= _MAX_PAGE_MS)


def _row(what: str, shown: str, target: str, is_met: bool) -> Row:
    return Row(what, shown, "", None, target, is_met)


def _broker_work(broker: BrokerProcess) -> float:
    """The part of a core that the broker, with all its processes, works."""
    pids = [broker.process.pid, *broker.process.children]
    before = sum(map(cpu_s, pids))
    time.sleep(_WINDOW_S)
    return (sum(map(cpu_s, pids)) - before) / _WINDOW_S
