"""Which modules read bytes, and which of them a fuzz target calls.

A module reads bytes if it calls one of ``READERS``. JSON of Java is read by one function, which has a target.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import tanist
from tests.support import fuzz_targets

READERS: Final = frozenset(
    {
        *("json.decode", "json.loads", "json.load", "yaml.safe_load", "tomllib.loads"),
        *("unpack", "unpack_from", "iter_unpack", "from_bytes", "frombuffer"),
        *("fromhex", "unhexlify", "b64decode", "literal_eval", "fromstring"),
    }
)

CALLED: Final[Mapping[str, str]] = {
    "broker.acl.addresses": "plain-acl",
    "broker.sql.values": "sql",
    "model.host": "record",
    "store.index_file": "index-file",
    "spark.commitlog.by_queue": "queue-entries",
}
"""What a target calls through another module."""

TRUSTED: Final[Mapping[str, str]] = {
    "broker.writes.kept_writes": "tables that brokers put into their own logs, which are checked there",
    "chaos.hostile": "constants",
    "cli.story": "what our own commands have printed",
    "cli.story_acts": "what our own commands have printed",
    "cli.up": "the ports of the last start",
    "client.queues.allocation": "a hash",
    "console.web.guard": "one header, of base64",
    "controller.leading": "one record of the registry, which is refused whole",
    "coord.record_file": "a hash",
    "model.java_hash": "text that was decoded before",
    "protocol.bodies.sync": "of the size that it has",
    "spark.archive.catalogue": "the footers of our own Parquet files",
    "spark.archive.columns": "columns that Arrow has checked",
    "spark.audit.indexes": "whole entries, of which each is compared with the log",
    "spark.check.job": "what our own tasks have sent",
    "spark.making": "rows of Spark",
    "spark.rebuild.staging": "files of this run, of the size that it knows",
    "spark.rocketmq.options": "options of whoever runs the job",
    "spark.rocketmq.progress": "what Spark keeps of our own offsets",
    "spark.rocketmq.pulling": "records that were located before",
    "store.soundness": "heads that are looked for, and then checked",
    "store.timer_log": "slots of the size that they have, each with its number",
    "up.control": "the socket of one's own cluster",
}
"""What reads nothing that a stranger, or a damaged disk, could bend, or is bounded otherwise."""


def reading_modules() -> set[str]:
    """The names of all modules that read bytes, without the package's."""
    root = Path(tanist.__file__).parent
    return {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.rglob("*.py")
        if any(_reads(call) for call in _calls(path))
    }


def imported_modules() -> set[str]:
    """Those that the targets call by themselves."""
    tree = ast.parse(Path(fuzz_targets.__file__).read_text(encoding="utf-8"))
    imports = (node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
    return {module.removeprefix("tanist.") for module in imports}


def _calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def _reads(call: str) -> bool:
    *_, last = call.split(".")
    return last in READERS or ".".join(call.split(".")[-2:]) in READERS
