"""``tanist spark audit`` and ``rebuild``: what a store's files hold, and its indexes built again."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from tanist.admin.asking import Access
from tanist.cli.asked import JSON
from tanist.cli.spark_job import CONF, MASTER, echo_json, read_conf, show_progress
from tanist.config import load_properties, parse_settings
from tanist.spark.access import cluster_options
from tanist.spark.running import spark_workers
from tanist.spark.session import check_installed
from tanist.store import StoreSettings

if TYPE_CHECKING:
    from tanist.spark.audit.job import AuditReport
    from tanist.spark.audit.live import LiveReport

EXIT_UNFIT = 1
_CONFIG = click.option(
    "-c",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The broker's config, if it sets maxHashSlotNum, maxIndexNum or messageDelayLevel.",
)
_FOLDER = click.Path(exists=True, file_okay=False, resolve_path=True)


@click.command()
@click.argument("stores", nargs=-1, required=True, type=_FOLDER)
@MASTER
@CONF
@_CONFIG
@click.option("--namesrv", help="Compare one store with what the brokers of this cluster hand out.")
@click.option("--broker-name", help="The broker whose store it is, if the cluster has several.")
@click.option("--log-only", is_flag=True, help="Compare neither indexes nor offsets.")
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write down there what was found equal, for `tanist audit verify`.",
)
@JSON
@click.pass_obj
def audit(
    access: Access,
    stores: tuple[str, ...],
    *,
    master: str,
    conf: tuple[str, ...],
    config_file: Path | None,
    namesrv: str | None,
    broker_name: str | None,
    log_only: bool,
    certificate: Path | None,
    as_json: bool,
) -> None:
    """Compare two or more STORES: a master's and its slaves', or a store and its backup.

    Their logs are compared byte for byte; the first differing byte, its record and its epoch are named. Then
    consume queues, key index and the offsets of groups. Exit code 1 if logs or indexes differ.

    With --namesrv one store is compared with a live broker, message by message.
    """
    check_installed()
    if namesrv is not None:
        given = {"--certificate": certificate, "--log-only": log_only, "-c": config_file}
        _check_live(stores, [option for option, value in given.items() if value])
        with spark_workers(master, job="audit", settings=read_conf(conf), tell=show_progress) as workers:
            from tanist.spark.audit.live import audit_live  # noqa: PLC0415 - they need Arrow.
            from tanist.spark.rocketmq.options import for_batch, read_options  # noqa: PLC0415

            asked = cluster_options(namesrv, access) | {"subscribePattern": ".*"}
            options = for_batch(read_options(asked))
            live = audit_live(stores[0], options, broker_name=broker_name, run=workers.run)
        _print_live(live, as_json=as_json)
        if not live.is_equal:
            sys.exit(EXIT_UNFIT)
        return
    if broker_name is not None:
        raise click.UsageError("--broker-name is for --namesrv: files are named by their folders")
    settings = _store_settings(config_file)
    with spark_workers(master, job="audit", settings=read_conf(conf), tell=show_progress) as workers:
        from tanist.spark.audit.job import audit as run_audit  # noqa: PLC0415

        found = run_audit(*stores, run=workers.run, with_indexes=not log_only, settings=settings)
    print_audit(found, as_json=as_json)
    if certificate is not None and found.is_equal:
        certificate.write_bytes(msgspec.json.format(msgspec.json.encode(found.certificate()), indent=2))
    if not found.is_equal or found.index_problems:
        sys.exit(EXIT_UNFIT)


def _check_live(stores: tuple[str, ...], given: list[str]) -> None:
    if len(stores) != 1:
        raise click.UsageError("--namesrv compares one store with its broker, and several are named")
    if given:
        raise click.UsageError(
            f"{given[0]} is for two stores or more: a live broker hands out messages, not its log and its "
            "indexes, so nothing of that kind is compared; leave it out, or name the broker's store"
        )


def _print_live(found: "LiveReport", *, as_json: bool) -> None:
    if as_json:
        echo_json(found)
        return
    click.echo(f"compared {found.compared_messages} messages, {found.compared_bytes} bytes")
    click.echo(f"{found.newer_messages} lie outside of what the store's log has")
    if found.is_equal:
        click.echo("equal")
        return
    click.echo(f"differs first at {found.first_difference}: {found.record}")
    if found.epoch is not None:
        click.echo(f"written in epoch {found.epoch}")


@click.command()
@click.argument("store", type=_FOLDER)
@click.option("--to", type=click.Path(resolve_path=True), help="Build there, and leave the store as it is.")
@MASTER
@CONF
@_CONFIG
@JSON
def rebuild(
    store: str,
    *,
    to: str | None,
    master: str,
    conf: tuple[str, ...],
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Build the consume queues and the key index of a STORE again from its log, in parallel.

    They are what its broker would build, byte for byte. Without --to they take the place of the old ones,
    which stay beside them; no broker may use the store meanwhile.
    """
    settings = _store_settings(config_file)
    check_installed()
    with spark_workers(master, job="rebuild", settings=read_conf(conf), tell=show_progress) as workers:
        from tanist.spark.rebuild.job import rebuild as run_rebuild  # noqa: PLC0415 - it needs Arrow.

        found = run_rebuild(store, to, settings=settings, run=workers.run)
    if as_json:
        echo_json(found)
        return
    click.echo(
        f"built {found.queue_count} queues and {found.index_files} index files with {found.key_count} keys "
        f"of {found.record_count} messages in [{found.log_start}, {found.log_end}), in {found.built_in}"
    )
    for problem in found.problems:
        click.echo(f"not queued: {problem}")


def _store_settings(config_file: Path | None) -> StoreSettings:
    raw = load_properties(config_file) if config_file is not None else {}
    return parse_settings(raw, StoreSettings, source=config_file)[0]


def print_audit(found: "AuditReport", *, as_json: bool) -> None:
    """Say what came of an audit."""
    if as_json:
        echo_json(found)
        return
    click.echo(f"compared [{found.log_start}, {found.log_end}) of {' and '.join(found.stores)}")
    for store, end in zip(found.stores, found.ends, strict=True):
        if end > found.log_end:
            click.echo(f"{store} goes on for {end - found.log_end} bytes that not all have")
    if found.is_equal:
        click.echo(f"equal; root {found.root}")
    else:
        click.echo(f"{found.different_blocks} blocks differ, first at log offset {found.first_difference}")
        click.echo(f"in {found.different_store}, the bytes there: {found.bytes_there}")
        click.echo(f"the record at {found.record_start}: {found.record}")
        if found.epoch is not None:
            click.echo(f"written in epoch {found.epoch}")
    for problem in found.index_problems:
        click.echo(f"index: {problem}")
    for problem in found.offset_problems:
        click.echo(f"offsets: {problem}")
