"""Not here: commands of mqadmin for what Tanist has not, each with what to do instead.

They take any arguments, so that a script of ``mqadmin``'s is told in one line why it can not go on.
"""

from typing import NamedTuple

import click

from tanist.cli.exit_codes import Exit


class Missing(NamedTuple):
    """A command that is refused."""

    name: str
    subject: str
    instead: str


MISSING = (
    Missing("updateStaticTopic", "static topics", "use updateTopic; queues stay on their brokers"),
    Missing("remappingStaticTopic", "static topics", "make the topic on other brokers and wipe the old ones"),
    Missing("addBroker", "broker containers", "start another process, tanist broker -c FILE"),
    Missing("removeBroker", "broker containers", "stop the broker's process with SIGTERM"),
    Missing("exportPopRecord", "POP consumption", "consumerProgress shows where groups stand"),
    Missing("dumpCompactionLog", "compaction topics", "tanist store cat reads a log"),
    Missing("exportMetadataInRocksDB", "settings in RocksDB", "exportMetadata writes the same as JSON"),
    Missing("rocksDBConfigToJson", "settings in RocksDB", "the broker's config folder has JSON files"),
    Missing("checkRocksdbCqWriteProgress", "queues in RocksDB", "tanist store verify checks queues"),
    Missing("startMonitoring", "a monitor inside the tool", "the console and the brokers' metrics have it"),
)


def _refusing(missing: Missing) -> click.Command:
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def refuse(arguments: tuple[str, ...]) -> None:
        del arguments
        click.echo(
            f"tanist: {missing.name} is about {missing.subject}, which Tanist has not; {missing.instead}",
            err=True,
        )
        raise SystemExit(Exit.NOT_SUPPORTED)

    return click.command(
        name=missing.name,
        help=f"Refused: Tanist has no {missing.subject}; {missing.instead}.",
        hidden=True,
        context_settings={"ignore_unknown_options": True},
    )(refuse)


COMMANDS = tuple(map(_refusing, MISSING))
