"""``tanist store repair``: open a store that is refused, at the price of what is damaged."""

import shutil
from pathlib import Path

import click

from tanist.cli.describe import describe_store
from tanist.cli.serving import config_file_option
from tanist.config import load_properties, parse_settings
from tanist.errors import CorruptRecord
from tanist.store.disk import Disk
from tanist.store.reader import StoreReader
from tanist.store.settings import StoreSettings
from tanist.store.store import MessageStore


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@config_file_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def repair(folder: Path, *, config_file: Path | None, yes: bool) -> None:
    """Cut a log that is refused as damaged, so that the store opens again. What lies behind is lost.

    A copy of the files that are cut is kept in the store's folder. The broker's config file is needed
    if it sets sizes of files.
    """
    settings = _settings(folder, config_file)
    try:
        MessageStore.open(folder, settings).close()
    except CorruptRecord as damage:
        click.echo(f"damage: {damage}")
    else:
        click.echo("the store opens: there is nothing to repair (verify checks every record of it)")
        return
    with StoreReader(folder) as reader:
        log_end = describe_store(reader).log_end
        damaged = [segment.path for segment in reader.segments if segment.end > log_end]
    if not yes:
        click.confirm(f"Keep a copy of {len(damaged)} files and cut the log at {log_end}?", abort=True)
    kept = _keep_copies(folder, log_end, damaged)
    with MessageStore.open(folder, settings, accept_loss=True) as opened:
        click.echo(f"cut at {opened.log.log_end}: {opened.recovery.reason}; {kept}")


def _settings(folder: Path, config_file: Path | None) -> StoreSettings:
    """The sizes that the config file tells, or else those of the files that are there."""
    if config_file is not None:
        return parse_settings(load_properties(config_file), StoreSettings, source=config_file)[0]
    with StoreReader(folder) as reader:
        return StoreSettings(
            mapped_file_size_commit_log=reader.segments.size_bytes,
            mapped_file_size_consume_queue=reader.queues.file_bytes,
        )


def _keep_copies(folder: Path, log_end: int, damaged: list[Path]) -> str:
    """Copy files durably into a new folder; what was done."""
    if not damaged:
        return "no file is cut"
    kept = folder / f"damaged-{log_end}"
    number = 1
    while kept.exists():
        number += 1
        kept = folder / f"damaged-{log_end}-{number}"
    kept.mkdir()
    disk = Disk()
    for path in damaged:
        shutil.copy2(path, kept / path.name)
        disk.sync_file(kept / path.name)
    disk.sync_dir(kept)
    disk.sync_dir(folder)
    return f"the old files are in {kept}"
