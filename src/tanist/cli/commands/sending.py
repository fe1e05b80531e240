"""Sending by hand: one message, or many to see how long a broker takes."""

import click

from tanist.admin.cluster import cluster_info, topic_route
from tanist.admin.refused import NotThere
from tanist.admin.rows import Row
from tanist.admin.sending import SentRow, average_ms, send_timed, sending
from tanist.cli.commanding import TOPIC, Asker, command
from tanist.cli.exit_codes import Exit
from tanist.cli.shown import Shown, listing, table_of
from tanist.client import Message
from tanist.model.route import MessageQueue

_AMOUNT = click.option(
    "-a", "--amount", type=click.IntRange(1, 100_000), default=100, help="So many messages."
)
_SIZE = click.option(
    "-s", "--size", type=click.IntRange(1, 4_000_000), default=128, help="Of so many bytes each."
)


class ReplyTimeRow(Row, frozen=True, kw_only=True):
    """How long sends to one broker took."""

    cluster_name: str
    broker_name: str
    rt_ms: float
    success_count: int
    fail_count: int


@command(
    "sendMessage",
    TOPIC,
    click.option("-p", "--body", required=True, help="The body, as text."),
    click.option("-k", "--key", "keys", help="Its keys, separated by blanks."),
    click.option("-c", "--tags", help="Its tag."),
    click.option("-b", "--broker", "--brokerName", "broker_name", help="To this broker, by name."),
    click.option("-i", "--qid", "queue_id", type=int, help="To this queue of it."),
    click.option("-m", "--msgTraceEnable", "is_traced", type=bool, default=False, help="With a trace."),
)
async def send_message(
    ask: Asker,
    *,
    topic: str,
    body: str,
    keys: str | None,
    tags: str | None,
    broker_name: str | None,
    queue_id: int | None,
    is_traced: bool,
) -> Shown:
    """Send one message."""
    if queue_id is not None and broker_name is None:
        raise click.UsageError("-i needs -b, the broker whose queue it is")
    message = Message(topic, body.encode(), tags=tags, keys=(keys or "").split())
    queue = None
    if broker_name is not None:
        queue = await _queue(ask, topic, broker_name, queue_id)
    async with sending(ask.access, ask.name_servers, is_traced=is_traced) as producer:
        row = await send_timed(producer, message, queue)
    return _sent([row])


@command(
    "sendMsgStatus",
    click.option("-b", "--brokerName", "broker_name", required=True, help="The broker's name."),
    click.option("-s", "--messageSize", "size", type=click.IntRange(1), default=128, help="Bytes each."),
    click.option("-c", "--count", "amount", type=click.IntRange(1), default=50, help="So many messages."),
)
async def send_status(ask: Asker, *, broker_name: str, size: int, amount: int) -> Shown:
    """Send messages to a broker, to the topic that has its name, and show how each fared."""
    return _sent(await _send_many(ask, broker_name, amount=amount, size=size))


@command("checkMsgSendRT", TOPIC, _AMOUNT, _SIZE)
async def check_reply_time(ask: Asker, *, topic: str, amount: int, size: int) -> Shown:
    """Send messages to a topic and show how long each took, and on average."""
    return _sent(await _send_many(ask, topic, amount=amount, size=size))


@command(
    "clusterRT",
    _AMOUNT,
    _SIZE,
    click.option("-c", "--cluster", help="Only this cluster."),
    click.option("-p", "--print log", hidden=True, expose_value=False),
    click.option("-m", "--machine room", hidden=True, expose_value=False),
    repeats=True,
)
async def cluster_reply_time(ask: Asker, *, amount: int, size: int, cluster: str | None) -> Shown:
    """Send messages to every master, to the topic that has its name, and show how long they took."""
    info = await cluster_info(ask.wire, await ask.name_server())
    rows: list[ReplyTimeRow] = []
    for name, group in sorted(info.broker_addr_table.items()):
        if cluster in (None, group.cluster) and group.master_addr is not None:
            sent = await _send_many(ask, name, amount=amount, size=size)
            rows.append(
                ReplyTimeRow(
                    cluster_name=group.cluster,
                    broker_name=name,
                    rt_ms=average_ms(sent),
                    success_count=sum(row.is_sent for row in sent),
                    fail_count=sum(not row.is_sent for row in sent),
                )
            )
    shown = listing(rows, ReplyTimeRow, none="no master is registered there")
    return shown._replace(exit_code=Exit.FAILED if any(row.fail_count for row in rows) else Exit.DONE)


COMMANDS = (send_message, send_status, check_reply_time, cluster_reply_time)


async def _queue(ask: Asker, topic: str, broker_name: str, queue_id: int | None) -> MessageQueue:
    route = await topic_route(ask.wire, await ask.name_server(), topic)
    offers = {offer.broker_name: offer for offer in route.queue_datas if offer.is_writable}
    if broker_name not in offers:
        raise NotThere(f"{topic} can not be written on {broker_name}; it can on {', '.join(sorted(offers))}")
    count = offers[broker_name].write_queue_count
    if queue_id is not None and not 0 <= queue_id < count:
        raise NotThere(f"{topic} has no queue {queue_id} on {broker_name}; it has 0 to {count - 1}")
    return MessageQueue(topic=topic, broker_name=broker_name, queue_id=queue_id or 0)


async def _send_many(ask: Asker, topic: str, *, amount: int, size: int) -> list[SentRow]:
    message = Message(topic, b"a" * size)
    async with sending(ask.access, ask.name_servers) as producer:
        return [await send_timed(producer, message) for _ in range(amount)]


def _sent(rows: list[SentRow]) -> Shown:
    failures = [row for row in rows if not row.is_sent]
    exit_code = Exit.DONE if not failures else Exit.FAILED if len(failures) == len(rows) else Exit.PARTLY
    total = f"sent {len(rows) - len(failures)} of {len(rows)}, {average_ms(rows):.2f} ms on average"
    return Shown({"sent": rows, "averageMs": average_ms(rows)}, [table_of(rows, SentRow), total], exit_code)
