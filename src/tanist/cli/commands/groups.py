"""Groups: their settings, who is connected, and what clients are doing."""

from typing import Any, BinaryIO

import click
import msgspec
from rich.table import Table

from tanist.admin import groups, topics
from tanist.admin.refused import NotThere
from tanist.cli.commanding import GROUP, ONE_BROKER, TOPIC, WHOM, Asker, command
from tanist.cli.commands.topics import FILE
from tanist.cli.shown import Shown, done_at, listing, table_of
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.topics import dlq_topic, retry_topic
from tanist.protocol.bodies.client import MessageRequestMode
from tanist.protocol.bodies.running import PROP_CONSUME_ORDERLY, PROP_CONSUME_TYPE

_CONSUMER_GROUP = click.option("-g", "--consumerGroup", "group", required=True, help="The consumer group.")


@command(
    "updateSubGroup",
    *WHOM,
    GROUP,
    click.option("-s", "--consumeEnable", "is_consume_enabled", type=bool, help="Whether it may consume."),
    click.option(
        "-m",
        "--consumeFromMinEnable",
        "is_consume_from_min_enabled",
        type=bool,
        help="From the first message.",
    ),
    click.option(
        "-d", "--consumeBroadcastEnable", "is_broadcast_enabled", type=bool, help="May it broadcast."
    ),
    click.option("-o", "--consumeMessageOrderly", "is_consumed_orderly", type=bool, help="Is it in order."),
    click.option("-q", "--retryQueueNums", "retry_queue_count", type=click.IntRange(0), help="Retry queues."),
    click.option("-r", "--retryMaxTimes", "retry_max_times", type=int, help="Before a message is given up."),
    click.option(
        "-p", "--groupRetryPolicy", "policy", help='{"type":"EXPONENTIAL",…} or {"type":"CUSTOMIZED",…}'
    ),
    click.option("-i", "--brokerId", "broker_id", type=int, help="Which replica it reads."),
    click.option(
        "-w", "--whichBrokerWhenConsumeSlowly", "slow_broker_id", type=int, help="Which one if it is slow."
    ),
    click.option(
        "-a", "--notifyConsumerIdsChanged", "is_change_notified", type=bool, help="Tell members of others."
    ),
    click.option("--attributes", help="+key=value,-key"),
)
async def update_group(
    ask: Asker,
    *,
    address: str | None,
    cluster: str | None,
    group: str,
    policy: str | None,
    attributes: str | None,
    **given: Any,
) -> Shown:
    """Create a consumer group on a broker or on all masters of a cluster, or change it.

    What is not given is as in a new group, not as it was: that is what mqadmin does.
    """
    changes = {name: value for name, value in given.items() if value is not None}
    if policy is not None:
        changes["group_retry_policy"] = groups.read_retry_policy(policy)
    if attributes is not None:
        wanted = topics.read_attributes(attributes) or ""
        changes["attributes"] = dict(_attribute(part) for part in wanted.split(",") if part.strip())
    config = msgspec.structs.replace(SubscriptionGroupConfig(group_name=group), **changes)
    told = await groups.update_group(ask.wire, await ask.brokers(address, cluster), config)
    return done_at(told, f"group {group} is there")


@command("updateSubGroupList", *WHOM, FILE)
async def update_group_list(ask: Asker, *, address: str | None, cluster: str | None, file: BinaryIO) -> Shown:
    """Create many consumer groups, or change them, from a file: [{"groupName": "billing"}, …]."""
    configs = groups.read_group_configs(file.read())
    told = await groups.update_groups(ask.wire, await ask.brokers(address, cluster), configs)
    return done_at(told, f"{len(configs)} groups are there")


@command(
    "deleteSubGroup",
    *WHOM,
    GROUP,
    click.option(
        "-r", "--removeOffset", "are_offsets_deleted", type=bool, default=False, help="Offsets too."
    ),
)
async def delete_group(
    ask: Asker, *, address: str | None, cluster: str | None, group: str, are_offsets_deleted: bool
) -> Shown:
    """Delete a consumer group; from a cluster also its retries and dead letters."""
    addresses = await ask.brokers(address, cluster)
    is_there = await groups.is_group_there(ask.wire, addresses, group)
    told = await groups.delete_group(ask.wire, addresses, group, are_offsets_deleted=are_offsets_deleted)
    if cluster is not None:
        name_server = await ask.name_server()
        for topic in (retry_topic(group), dlq_topic(group)):
            deleted = await topics.delete_topic(
                ask.wire, ask.name_servers, name_server, cluster=cluster, topic=topic
            )
            told += [each for each in deleted if each.failure is not None]
    if not is_there and all(each.failure is None for each in told):
        # What an earlier attempt may have left of it is deleted all the same.
        raise NotThere(f"none of {', '.join(addresses)} has a group {group}; what was left of it is deleted")
    return done_at(told, f"group {group} is deleted")


@command(
    "setConsumeMode",
    *WHOM,
    GROUP,
    click.option("-t", "--topicName", "topic", required=True, help="The topic."),
    click.option("-m", "--mode", type=click.Choice(["PULL", "POP"]), required=True),
    click.option("-q", "--popShareQueueNum", "share", type=int, default=0),
)
async def set_mode(
    ask: Asker, *, address: str | None, cluster: str | None, group: str, topic: str, mode: str, share: int
) -> Shown:
    """Say how a group gets a topic's messages. Brokers of Tanist know pulling alone, and refuse it."""
    wanted = MessageRequestMode(topic=topic, consumer_group=group, mode=mode, pop_share_queue_count=share)
    told = await groups.set_consume_mode(ask.wire, await ask.brokers(address, cluster), wanted)
    return done_at(told, f"{group} gets {topic} by {mode}")


@command("getConsumerConfig", GROUP, repeats=True)
async def get_config(ask: Asker, *, group: str) -> Shown:
    """Show the settings of a consumer group on all masters."""
    rows = await groups.group_config(ask.wire, await ask.name_server(), group)
    columns = [row.broker_name for row in rows]
    table = Table("setting", *columns, box=None)
    for name in SubscriptionGroupConfig.__struct_fields__:
        table.add_row(name.replace("_", " "), *(str(getattr(row.config, name)) for row in rows))
    return Shown(rows, [table])


@command("consumerConnection", _CONSUMER_GROUP, ONE_BROKER, repeats=True)
async def consumer_connection(ask: Asker, *, group: str, address: str | None) -> Shown:
    """Show the members of a consumer group, from where, and what they want."""
    name_server = "" if address is not None else await ask.name_server()
    found = await groups.group_members(ask.wire, name_server, group, address=address)
    lines = [
        f"{each.topic}: {each.expression} ({each.expression_type})"
        for _, each in sorted(found.subscription_table.items())
    ]
    kind = f"{found.consume_type}, {found.message_model}, {found.consume_from_where}"
    return Shown(found, [table_of(groups.rows_of(found.connections), groups.MemberRow), "", *lines, kind])


@command(
    "producerConnection",
    click.option("-g", "--producerGroup", "group", required=True, help="The producer group."),
    TOPIC,
    repeats=True,
)
async def producer_connection(ask: Asker, *, group: str, topic: str) -> Shown:
    """Show the producers of a group that are connected to brokers of a topic."""
    rows = await groups.producer_members(ask.wire, await ask.name_server(), group=group, topic=topic)
    return listing(rows, groups.MemberRow)


@command(
    "producer",
    click.option("-b", "--broker", "--brokerAddr", "address", required=True, help="The broker, host:port."),
    repeats=True,
)
async def producers(ask: Asker, *, address: str) -> Shown:
    """Show all producers that are connected to a broker."""
    rows = groups.producer_rows(await groups.all_producers(ask.wire, address))
    return listing(rows, groups.ProducerRow, none="no producer")


@command(
    "consumerStatus",
    _CONSUMER_GROUP,
    click.option("-i", "--clientId", "client_id", help="Only this client."),
    ONE_BROKER,
    click.option("-s", "--jstack", "with_stacks", is_flag=True, help="With the stacks of its threads."),
    repeats=True,
)
async def consumer_status(
    ask: Asker, *, group: str, client_id: str | None, address: str | None, with_stacks: bool
) -> Shown:
    """Show what the clients of a consumer group are doing: their queues, what they hold, their rates."""
    name_server = "" if address is not None else await ask.name_server()
    found = await groups.running_members(
        ask.wire, name_server, group, client_id=client_id, address=address, with_stacks=with_stacks
    )
    return Shown(found, [part for each in found for part in _running_parts(each)])


COMMANDS = (
    update_group,
    update_group_list,
    delete_group,
    set_mode,
    get_config,
    consumer_connection,
    producer_connection,
    producers,
    consumer_status,
)


def _attribute(part: str) -> tuple[str, str]:
    key, _, value = part.strip().partition("=")
    return key, value


def _running_parts(running: groups.Running) -> list[str | Table]:
    info = running.info
    if info is None:
        return [f"{running.client_id} does not tell: {running.failure}"]
    told = info.properties
    kind = f"{told.get(PROP_CONSUME_TYPE)}, in order: {told.get(PROP_CONSUME_ORDERLY)}"
    queues = Table("topic", "broker", "queue", "committed", "cached", "locked", "dropped", box=None)
    for queue, each in sorted(info.queue_table.items()):
        queues.add_row(
            queue.topic,
            queue.broker_name,
            str(queue.queue_id),
            str(each.consumer_offset),
            str(each.cached_count),
            "yes" if each.is_locked else "no",
            "yes" if each.is_dropped else "no",
        )
    rates = [
        f"  {topic}: pull {each.pull_tps:.2f}/s, ok {each.consume_ok_tps:.2f}/s in {each.consume_rt:.2f} ms, "
        f"failed {each.consume_failed_tps:.2f}/s, {each.consume_failed_count} in the last hour"
        for topic, each in sorted(info.status_table.items())
    ]
    stacks = [info.jstack] if info.jstack else []
    return [f"{running.client_id} version {running.version}: {kind}", queues, *rates, *stacks]
