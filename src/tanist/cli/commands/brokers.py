"""Brokers: what runs where, their settings, and cleaning up."""

import time

import click

from tanist.admin import brokers
from tanist.admin.cluster import broker_config, cluster_info, runtime_info
from tanist.admin.parallel import Told, ask_each
from tanist.admin.refused import NotThere
from tanist.cli.commanding import KEY, ONE_BROKER, VALUE, WHOM, Asker, command
from tanist.cli.shown import Shown, done_at, failed_lines, listing, outcome_of, settings_lines
from tanist.protocol.codes import RequestCode
from tanist.protocol.response_errors import NotMaster

_GROUP = click.option("-g", "--consumerGroup", "group", required=True, help="The consumer group.")
_ANY_CLUSTER = click.option("-c", "--cluster", "--clusterName", "cluster", help="Only this cluster.")


@command(
    "clusterList",
    _ANY_CLUSTER,
    click.option("-m", "--moreStats", "by_day", is_flag=True, help="What came and went by day."),
    repeats=True,
)
async def cluster_list(ask: Asker, *, cluster: str | None, by_day: bool) -> Shown:
    """Show all brokers, their versions and rates, and how full their disks are."""
    name_server = await ask.name_server()
    if by_day:
        return listing(await brokers.list_days(ask.wire, name_server, cluster), brokers.DayRow)
    now_ms = time.time_ns() // 1_000_000
    rows = await brokers.list_brokers(ask.wire, name_server, cluster, now_ms=now_ms)
    return listing(rows, brokers.BrokerRow, none="no broker is registered there")


@command("brokerStatus", *WHOM, repeats=True)
async def broker_status(ask: Asker, *, address: str | None, cluster: str | None) -> Shown:
    """Show all that a broker measures, or all brokers of a cluster."""
    addresses = await ask.brokers(address, cluster, with_slaves=True)
    return _tables(await ask_each(addresses, lambda each: runtime_info(ask.wire, each)), "  {}: {}")


@command("getBrokerConfig", *WHOM, repeats=True)
async def get_config(ask: Asker, *, address: str | None, cluster: str | None) -> Shown:
    """Show the settings that a broker runs with, or all brokers of a cluster."""
    addresses = await ask.brokers(address, cluster, with_slaves=True)
    return _tables(await ask_each(addresses, lambda each: broker_config(ask.wire, each)), "{}={}")


@command(
    "updateBrokerConfig",
    *WHOM,
    KEY,
    VALUE,
    click.option("-a", "--updateAllBroker", "with_slaves", type=bool, default=False, help="Slaves too."),
)
async def update_config(
    ask: Asker, *, address: str | None, cluster: str | None, key: str, value: str, with_slaves: bool
) -> Shown:
    """Change a setting of a broker while it runs, or of all masters of a cluster."""
    addresses = await ask.brokers(address, cluster, with_slaves=with_slaves)
    told = await ask_each(addresses, lambda each: brokers.update_broker_config(ask.wire, each, {key: value}))
    return done_at(told, f"{key}={value}")


@command("cleanExpiredCQ", ONE_BROKER, _ANY_CLUSTER)
async def clean_queues(ask: Asker, *, address: str | None, cluster: str | None) -> Shown:
    """Have brokers remove queues that nobody can reach; all brokers if none is named."""
    return await _clean(ask, address, cluster, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, "queues are cleaned")


@command("cleanUnusedTopic", ONE_BROKER, _ANY_CLUSTER)
async def clean_topics(ask: Asker, *, address: str | None, cluster: str | None) -> Shown:
    """Have brokers remove what is left of deleted topics; all brokers if none is named."""
    return await _clean(ask, address, cluster, RequestCode.CLEAN_UNUSED_TOPIC, "unused topics are cleaned")


@command("deleteExpiredCommitLog", ONE_BROKER, _ANY_CLUSTER)
async def delete_log(ask: Asker, *, address: str | None, cluster: str | None) -> Shown:
    """Have brokers delete files of the log that are old enough, now; all brokers if none is named."""
    return await _clean(ask, address, cluster, RequestCode.DELETE_EXPIRED_COMMITLOG, "old files are deleted")


@command(
    "resetMasterFlushOffset",
    click.option("-b", "--brokerAddr", "address", required=True, help="The slave, host:port."),
    click.option(
        "-o", "--offset", type=click.IntRange(0), required=True, help="What its master has flushed."
    ),
)
async def reset_flush_offset(ask: Asker, *, address: str, offset: int) -> Shown:
    """Correct how far a slave of RocketMQ believes its master has flushed. Tanist's ask their master."""
    await brokers.reset_master_flush_offset(ask.wire, address, offset)
    return Shown(
        {"brokerAddr": address, "offset": offset}, [f"{address}: its master has flushed to {offset}"]
    )


@command("getColdDataFlowCtrInfo", *WHOM, repeats=True)
async def cold_info(ask: Asker, *, address: str | None, cluster: str | None) -> Shown:
    """Show what brokers of RocketMQ hold back of reads from old files. Tanist's hold nothing back."""
    told = await brokers.cold_data_flow(ask.wire, await ask.brokers(address, cluster, with_slaves=True))
    lines = [f"{each.address}: {each.value}" for each in told if each.failure is None]
    value = {each.address: each.value for each in told if each.failure is None}
    return Shown(value, [*lines, *failed_lines(told)], outcome_of(told))


@command(
    "updateColdDataFlowCtrGroupConfig",
    *WHOM,
    _GROUP,
    click.option("-v", "--threshold", required=True, help="Bytes a second."),
)
async def update_cold(
    ask: Asker, *, address: str | None, cluster: str | None, group: str, threshold: str
) -> Shown:
    """Bound what a group may read from old files of a broker of RocketMQ."""
    addresses = await ask.brokers(address, cluster, with_slaves=True)
    code, body = RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, f"{group}={threshold}\n".encode()
    return done_at(await brokers.order_each(ask.wire, addresses, code, body=body), f"{group}={threshold}")


@command("removeColdDataFlowCtrGroupConfig", *WHOM, _GROUP)
async def remove_cold(ask: Asker, *, address: str | None, cluster: str | None, group: str) -> Shown:
    """Do not bound what a group may read from old files of a broker of RocketMQ."""
    addresses = await ask.brokers(address, cluster, with_slaves=True)
    code = RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG
    told = await brokers.order_each(ask.wire, addresses, code, body=group.encode())
    return done_at(told, f"{group} has no bound")


@command(
    "setCommitLogReadAheadMode",
    *WHOM,
    click.option("-m", "--commitLogReadAheadMode", "mode", type=click.Choice(["0", "1"]), required=True),
)
async def set_read_ahead(ask: Asker, *, address: str | None, cluster: str | None, mode: str) -> Shown:
    """Have brokers of RocketMQ read their logs ahead, 0, or at random, 1."""
    addresses = await ask.brokers(address, cluster, with_slaves=True)
    return done_at(await brokers.set_read_ahead_mode(ask.wire, addresses, mode), f"mode {mode}")


COMMANDS = (
    cluster_list,
    broker_status,
    get_config,
    update_config,
    clean_queues,
    clean_topics,
    delete_log,
    reset_flush_offset,
    cold_info,
    update_cold,
    remove_cold,
    set_read_ahead,
)


async def _clean(ask: Asker, address: str | None, cluster: str | None, code: RequestCode, done: str) -> Shown:
    if address is None and cluster is None:
        info = await cluster_info(ask.wire, await ask.name_server())
        groups = info.broker_addr_table.values()
        addresses = sorted(each for group in groups for each in group.broker_addrs.values())
        if not addresses:
            raise NotThere("no broker is registered there")
    else:
        addresses = await ask.brokers(address, cluster, with_slaves=True)
    told = await brokers.order_each(ask.wire, addresses, code)
    # A slave of Tanist gives up with its master what that gives up, and by itself only old files.
    own = [each for each in told if not isinstance(each.failure, NotMaster)]
    return done_at(own or told, done)


def _tables(told: list[Told[dict[str, str]]], form: str) -> Shown:
    """Keys and values of each broker, under its address."""
    parts: list[str] = []
    for each in told:
        if each.value is not None:
            lines = settings_lines(each.value) if form == "{}={}" else _lines(each.value, form)
            parts += [f"# {each.address}" if form == "{}={}" else each.address, *lines]
    value = {each.address: each.value for each in told if each.value is not None}
    return Shown(value, [*parts, *failed_lines(told)], outcome_of(told))


def _lines(values: dict[str, str], form: str) -> list[str]:
    return [form.format(key, value) for key, value in sorted(values.items())]
