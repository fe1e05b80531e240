"""What is kept of an audit: which range was compared, and the root of the tree over its blocks."""

from pathlib import Path

import msgspec

from tanist.protocol.java_json import BAD_JSON
from tanist.spark.audit.blocks import BLOCK_BYTES, leaves_of, root
from tanist.spark.commitlog.files import StoreFiles
from tanist.spark.commitlog.planning import open_store
from tanist.spark.errors import SparkError
from tanist.store.reader import StoreReader

_VERSION = 1


class Certificate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """That some logs held the same bytes in ``[log_start, log_end)`` when it was made."""

    version: int = _VERSION
    log_start: int
    log_end: int
    block_bytes: int = BLOCK_BYTES
    root: str
    made_at: str
    stores: tuple[str, ...]


class Verdict(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether a log still holds what a certificate says."""

    holds: bool
    reason: str


def load(path: Path) -> Certificate:
    """Read a certificate. Raises SparkError for a file that is none."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Certificate)
    except BAD_JSON as error:
        raise SparkError(f"{path} is no certificate of an audit: {error}") from error
    if (found.version, found.block_bytes) != (_VERSION, BLOCK_BYTES):
        raise SparkError(f"{path} is of another version than this Tanist can check")
    return found


def verify(certificate: Certificate, store: str) -> Verdict:
    """Hash the log of a store again and compare."""
    with open_store(store) as reader:
        files = files_of(reader)
        kept_from, kept_to = reader.segments.start, reader.segments.end
    start, end = certificate.log_start, certificate.log_end
    if not kept_from <= start <= end <= kept_to:
        return Verdict(
            holds=False,
            reason=f"the log holds [{kept_from}, {kept_to}), not all of [{start}, {end})",
        )
    try:
        found = root(list(leaves_of(files.read_across, start, end))).hex()
    finally:
        files.close()
    if found != certificate.root:
        return Verdict(
            holds=False, reason=f"the root over [{start}, {end}) is {found}, not {certificate.root}"
        )
    return Verdict(holds=True, reason=f"[{start}, {end}) is what it was on {certificate.made_at}")


def files_of(reader: StoreReader) -> StoreFiles:
    return StoreFiles(str(reader.root), reader.segments.size_bytes)
