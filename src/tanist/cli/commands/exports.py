"""Exports: topics, groups, settings and figures of a cluster, as files."""

from pathlib import Path
from typing import Any

import click

from tanist.admin.brokers import list_days
from tanist.admin.cluster import broker_config, cluster_info, group_configs, runtime_info, topic_configs
from tanist.admin.parallel import ask_each
from tanist.admin.replication import cluster_masters
from tanist.cli.commanding import WHOM, Asker, command
from tanist.cli.shown import Shown, failed_lines, outcome_of, to_json
from tanist.model.groups import TOOLS_CONSUMER_GROUP
from tanist.model.topics import DLQ_PREFIX, RETRY_PREFIX, SYSTEM_PREFIX, SYSTEM_TOPICS, TRACE_TOPIC

_FOLDER = click.option(
    "-f",
    "--filePath",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    # mqadmin's own default.
    default=Path("/tmp/rocketmq/export"),  # noqa: S108
    show_default=True,
    help="The folder to write to.",
)
_ONE_CLUSTER = click.option("-c", "--clusterName", "cluster", required=True, help="The cluster.")


@command(
    "exportMetadata",
    *WHOM,
    _FOLDER,
    click.option("-t", "--topic", "is_topics_only", is_flag=True, help="Only topics."),
    click.option("-g", "--subscriptionGroup", "is_groups_only", is_flag=True, help="Only groups."),
    click.option("-s", "--specialTopic", "with_special", is_flag=True, help="Retries and dead letters too."),
)
async def export_metadata(
    ask: Asker,
    *,
    address: str | None,
    cluster: str | None,
    folder: Path,
    is_topics_only: bool,
    is_groups_only: bool,
    with_special: bool,
) -> Shown:
    """Write the topics and groups of a broker, or of all masters of a cluster, to a file."""
    addresses = await ask.brokers(address, cluster)

    async def look(each: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if not is_groups_only:
            topics = await topic_configs(ask.wire, each)
            found["topicConfigTable"] = {
                name: config for name, config in topics.items() if _is_own(name, with_special=with_special)
            }
        if not is_topics_only:
            groups = await group_configs(ask.wire, each)
            found["subscriptionGroupTable"] = {
                name: config for name, config in groups.items() if not name.startswith(_SYSTEM_GROUPS)
            }
        return found

    told = await ask_each(addresses, look)
    tables = [each.value for each in told if each.value is not None]
    merged = {key: _merged(tables, key) for key in ("topicConfigTable", "subscriptionGroupTable")}
    value = {"cluster": cluster, "brokerAddr": address} | {
        key: table for key, table in merged.items() if any(key in each for each in tables)
    }
    path = _write(folder, "metadata.json", value)
    return Shown(value, [f"written to {path}", *failed_lines(told)], outcome_of(told))


@command("exportConfigs", _ONE_CLUSTER, _FOLDER)
async def export_configs(ask: Asker, *, cluster: str, folder: Path) -> Shown:
    """Write the settings of all masters of a cluster to a file."""
    name_server = await ask.name_server()
    masters = await cluster_masters(ask.wire, name_server, cluster)
    told = await ask_each(masters, lambda each: broker_config(ask.wire, each))
    info = await cluster_info(ask.wire, name_server)
    groups = [each for each in info.broker_addr_table.values() if each.cluster == cluster]
    value = {
        "brokerConfigs": {each.value["brokerName"]: each.value for each in told if each.value is not None},
        "clusterScale": {
            "namesrvSize": len(ask.name_servers),
            "masterBrokerSize": len(masters),
            "slaveBrokerSize": sum(len(each.broker_addrs) for each in groups) - len(masters),
        },
    }
    path = _write(folder, "configs.json", value)
    return Shown(value, [f"written to {path}", *failed_lines(told)], outcome_of(told))


@command("exportMetrics", _ONE_CLUSTER, _FOLDER)
async def export_metrics(ask: Asker, *, cluster: str, folder: Path) -> Shown:
    """Write the figures of all masters of a cluster to a file."""
    name_server = await ask.name_server()
    masters = await cluster_masters(ask.wire, name_server, cluster)
    told = await ask_each(masters, lambda each: runtime_info(ask.wire, each))
    days = await list_days(ask.wire, name_server, cluster)
    value = {
        "evaluateReport": {each.address: each.value for each in told if each.value is not None},
        "totalData": {
            "totalOneDayNum": sum(day.in_total_yesterday for day in days),
            "totalTodayNum": sum(day.in_total_today for day in days),
        },
    }
    path = _write(folder, "metrics.json", value)
    return Shown(value, [f"written to {path}", *failed_lines(told)], outcome_of(told))


COMMANDS = (export_metadata, export_configs, export_metrics)

_SYSTEM_GROUPS = ("CID_RMQ_SYS_", TOOLS_CONSUMER_GROUP, "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS")


def _is_own(name: str, *, with_special: bool) -> bool:
    """Whether somebody made the topic, and not the broker."""
    if name.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        return with_special
    return name not in SYSTEM_TOPICS and name != TRACE_TOPIC and not name.startswith(SYSTEM_PREFIX)


def _merged(tables: list[dict[str, Any]], key: str) -> dict[str, Any]:
    return {name: config for table in tables for name, config in table.get(key, {}).items()}


def _write(folder: Path, name: str, value: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(to_json(value) + "\n")
    return path
