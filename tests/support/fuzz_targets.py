"""Everything that reads bytes of others, as functions of bytes that a fuzzer can call.

A target takes any bytes at all. What its module may say of them is its own error and nothing else; whatever
else comes out is a finding. No sockets, and files only where a whole file is what is read.
"""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from tanist.admin.groups import read_group_configs, read_retry_policy
from tanist.admin.resets.journal import read_lines
from tanist.admin.resets.plan_file import read_plan
from tanist.admin.resets.refused import ResetRefused
from tanist.admin.topics import read_topic_configs
from tanist.broker.acl.plain_acl import parse_plain_acl
from tanist.broker.acl.rules import make_rules
from tanist.broker.controlled.identity import IdentityFiles
from tanist.broker.json_lines import JsonLines
from tanist.broker.resets.order_file import decode_order
from tanist.broker.settings import BrokerSettings
from tanist.broker.slave_consume.notes import decode_master_note, decode_slave_note
from tanist.broker.slave_consume.saved import FILE_NAME as STANDING
from tanist.broker.slave_consume.saved import SavedStandingFile
from tanist.broker.sql import BadExpression, compile_condition
from tanist.check.history import HistoryError, read_history
from tanist.client import MessageQueue
from tanist.client.offsets.offset_file import OffsetFile, OffsetTable
from tanist.client.received import decode_messages
from tanist.client.tracing.trace_format import decode_traces
from tanist.clock import SystemClock
from tanist.config.properties import parse_properties
from tanist.console.access.audit import AuditEntry, AuditLog
from tanist.console.access.passwords import is_hash
from tanist.console.access.users import read_users
from tanist.console.certificates import CertificateDesk
from tanist.console.errors import BadRequest
from tanist.console.web.actions import read_request
from tanist.console.web.changes import TopicUpdate
from tanist.controller.group_record import BadGroupRecord, decode_group
from tanist.coord.remote_messages import decode_changes
from tanist.errors import ConfigError, RemoteProtocolError, StoreError
from tanist.ha.record_walk import RecordWalk
from tanist.model.reading import BadReadingRecord, decode_assignment, decode_presence, decode_read_record
from tanist.model.subscription import subscribe
from tanist.nameserver.kv_file import KVFile
from tanist.protocol.batch import decode_batch
from tanist.protocol.bodies.base import Body
from tanist.protocol.bodies.client import decode_heartbeat
from tanist.protocol.bodies.config_text import decode_config
from tanist.protocol.bodies.registration import decode_registration
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.compression import decompress_body
from tanist.protocol.frame import FrameDecoder, first_request, whole_send
from tanist.protocol.ha_autoswitch import MasterFrameDecoder, SlaveFrameDecoder
from tanist.protocol.ha_autoswitch_forms import (
    decode_address_handshake,
    decode_compact_head,
    decode_long_answer,
)
from tanist.protocol.ha_classic import ReportDecoder, TransferDecoder
from tanist.protocol.ha_hello import (
    Authentication,
    HelloReader,
    decode_master_hello,
    decode_slave_hello,
    decode_slave_proof,
    decode_verdict,
)
from tanist.protocol.ha_link import FROM_MASTER, FROM_SLAVE, decode_frames
from tanist.protocol.ha_tables import decode_entries, decode_piece
from tanist.protocol.header_binary import decode_binary_header
from tanist.protocol.header_json import decode_json_header
from tanist.protocol.headers.pull import PullMessageRequest
from tanist.protocol.headers.send import SendMessageRequest, SendMessageRequestV2
from tanist.protocol.java_json import BAD_JSON, decode_java_json
from tanist.protocol.key_index import decode_index_header
from tanist.protocol.message_id import decode_offset_id, decode_unique_id
from tanist.protocol.properties import decode_properties
from tanist.protocol.queue_entry import decode_entries as decode_queue_entries
from tanist.protocol.queue_entry import find_run
from tanist.protocol.record import check_record, decode_record
from tanist.protocol.signature import is_signed
from tanist.spark.archive.folder import open_about
from tanist.spark.archive.layout import ABOUT, OURS
from tanist.spark.audit.certificate import load
from tanist.spark.decoding import LOG_OFFSET_AT, gather, have_sound_bodies, locate, walk
from tanist.spark.errors import BadOption, SparkError
from tanist.spark.lag.samples import read_samples
from tanist.spark.ledger.accounts import read_ledger_file
from tanist.spark.properties import Strings, maps
from tanist.spark.rocketmq.offsets import EARLIEST, LATEST, read_bound
from tanist.store.checkpoint import FILE_BYTES, decode_checkpoint, encode_checkpoint
from tanist.store.config_table import FILE_NAMES, ConfigTable, ConsumerOffsetTable
from tanist.store.deletions import decode_deletions
from tanist.store.disk import Disk
from tanist.store.diverged import REPORT_NAME, read_report
from tanist.store.epoch_file import decode_epochs
from tanist.store.incarnation import Incarnation
from tanist.store.scrub_note import FILE_NAME as SCRUB_NOTE
from tanist.store.scrub_note import ScrubNoteFile
from tanist.store.timer_checkpoint import TimerCheckpointFile
from tanist.store.truncation import decode_note
from tests.support.messages import SMALL, TOPIC, kill, open_store

CORPUS: Final = Path(__file__).parents[1] / "data" / "fuzz"
"""A folder a target, with inputs that once were findings or are worth to begin with."""
_MAX_BODY_BYTES = 1 << 16
_NOTHING = memoryview(b"")


@dataclass(frozen=True, slots=True)
class Target:
    """One decoder, and what it may raise."""

    decode: Callable[[bytes], object]
    errors: tuple[type[Exception], ...] = (RemoteProtocolError,)

    def __call__(self, data: bytes) -> None:
        """Read the bytes; what may be raised is swallowed."""
        with suppress(*self.errors):
            self.decode(data)


def _frames(data: bytes) -> None:
    decoder = FrameDecoder()
    # In two pieces, as a socket may give them.
    middle = len(data) // 2
    for piece in (data[:middle], data[middle:]):
        for command in decoder.feed(piece):
            _ = command.remark, command.ext
    whole_send(data)
    first_request(data)


def _typed_headers(data: bytes) -> None:
    command = decode_json_header(data, _NOTHING)
    for header_type in (SendMessageRequest, SendMessageRequestV2, PullMessageRequest):
        try:
            command.header(header_type)
        except RemoteProtocolError:
            continue


def _signed(data: bytes) -> None:
    command = decode_binary_header(data, _NOTHING)
    is_signed(command.ext, b"body", "secret-of-nobody")


def _hello(data: bytes) -> None:
    message, _ = HelloReader().feed(data)
    readings = (decode_slave_hello, decode_master_hello, decode_slave_proof, decode_verdict)
    for decode in readings:
        for authentication in Authentication:
            try:
                decode(data if message is None else message, authentication)
            except RemoteProtocolError:
                continue


class _Feedable(Protocol):
    def feed(self, data: bytes, /) -> object: ...


def _fed_in_pieces(make: Callable[[], _Feedable]) -> Callable[[bytes], None]:
    def feed(data: bytes) -> None:
        decoder = make()
        for start in range(0, len(data), 7):
            decoder.feed(data[start : start + 7])

    return feed


def _link(data: bytes) -> None:
    for side in (FROM_MASTER, FROM_SLAVE):
        try:
            decode_frames(memoryview(data), side)
        except RemoteProtocolError:
            continue


def _tables(data: bytes) -> None:
    decode_entries(decode_piece(data))


def _bodies(data: bytes) -> None:
    for flag in (0x0, 0x1, 0x101, 0x201, 0x301, 0x701):
        try:
            body = decompress_body(data, flag, max_bytes=_MAX_BODY_BYTES)
        except RemoteProtocolError:
            continue
        assert len(body) <= max(_MAX_BODY_BYTES, len(data))


def _record(data: bytes) -> None:
    try:
        check_record(memoryview(data), 0, log_offset=0)
    finally:
        decode_record(data)


def _registration(data: bytes) -> None:
    for is_compressed in (False, True):
        try:
            decode_registration(data, is_compressed=is_compressed, version=397)
        except RemoteProtocolError:
            continue


def _text(decode: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: decode(data.decode("utf-8", "surrogateescape"))


def _condition(text: str) -> None:
    compile_condition(text).holds({"a": "1", "b": "x", "color": "blue"})


def _acl(data: bytes) -> None:
    file = parse_plain_acl(data)
    if file is not None:
        make_rules(file)


def _queue(data: bytes) -> None:
    whole = data[: len(data) // 20 * 20]
    decode_queue_entries(whole)
    find_run(whole)


def _all_of(
    *decoders: Callable[[bytes], object], error: type[Exception] = RemoteProtocolError
) -> Callable[[bytes], None]:
    def decode(data: bytes) -> None:
        for decoder in decoders:
            with suppress(error):
                decoder(data)

    return decode


def _checkpoint(data: bytes) -> None:
    encode_checkpoint(decode_checkpoint(data.ljust(FILE_BYTES, b"\0")[:FILE_BYTES]))


def _note(data: bytes) -> None:
    assert (decode_note(data) or 0) >= 0


def _console(data: bytes) -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": data, "more_body": False}

    for path in ("/topics", "/api/v1/topics"):
        scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"host", b"console")]}
        reading = read_request(Request(scope, receive), TopicUpdate)
        # Nothing in it waits, so that it needs no event loop.
        with suppress(StopIteration, HTTPException, BadRequest):
            reading.send(None)


def _opened_with(folder: str, size_bytes: int) -> Callable[[bytes], None]:
    """Open a store that has nothing but this in one file of an index."""

    def open_it(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as home:
            path = Path(home) / folder
            path.parent.mkdir(parents=True)
            path.write_bytes(data.ljust(size_bytes, b"\0")[:size_bytes])
            kill(open_store(Path(home)))

    return open_it


def _in_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """Read a folder that has nothing but this in one file, by what reads it in production."""

    def read_it(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as home:
            path = Path(home) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            read(Path(home))

    return read_it


def _tables_of(root: Path) -> None:
    ConfigTable(Disk(), root, ConsumerOffsetTable).load()


def _identity(home: Path) -> None:
    settings = BrokerSettings(store_path_broker_identity=str(home / "brokerIdentity"))
    IdentityFiles(Disk(), settings).load()


def _standing(home: Path) -> None:
    SavedStandingFile(Disk(), home).load()


def _walked(data: bytes) -> None:
    """The records of a buffer as a task of Spark reads them, whatever their sums say."""
    raw = np.frombuffer(data, np.uint8)
    starts = walk(raw, 0, len(raw)).starts
    located, is_sound = locate(raw, starts, gather(raw, starts + LOG_OFFSET_AT, ">i8"))
    sound = located.take(is_sound)
    have_sound_bodies(sound)
    maps(Strings(raw, sound.topic_ends + 2, sound.ends))


def _java_json(json_type: type[Body]) -> Callable[[bytes], object]:
    return lambda data: decode_java_json(data, json_type)


_FILE_BYTES = 1 << 20
_QUEUE = MessageQueue(topic=TOPIC, broker_name="a", queue_id=0)
_QUEUE_FILE = f"consumequeue/{TOPIC}/0/{0:020d}"
_INDEX_FILE = "index/20260101000000000"
_INDEX_BYTES = 40 + SMALL.max_hash_slot_num * 4 + SMALL.max_index_num * 20

TARGETS: Final[Mapping[str, Target]] = {
    "frames": Target(_frames),
    "json-header": Target(lambda data: decode_json_header(data, _NOTHING)),
    "typed-header": Target(_typed_headers),
    "binary-header": Target(lambda data: decode_binary_header(data, _NOTHING)),
    "signature": Target(_signed),
    "record": Target(_record),
    "batch": Target(decode_batch),
    "properties": Target(decode_properties),
    "compression": Target(_bodies),
    "message-id": Target(_text(decode_offset_id)),
    "unique-id": Target(_text(decode_unique_id)),
    "heartbeat": Target(decode_heartbeat),
    "registration": Target(_registration),
    "config-text": Target(decode_config),
    "ha-hello": Target(_hello),
    "ha-link": Target(_link),
    "ha-classic-report": Target(_fed_in_pieces(ReportDecoder)),
    "ha-classic-transfer": Target(_fed_in_pieces(TransferDecoder)),
    "ha-autoswitch-slave": Target(_fed_in_pieces(SlaveFrameDecoder)),
    "ha-autoswitch-master": Target(_fed_in_pieces(MasterFrameDecoder)),
    "ha-tables": Target(_tables),
    "epoch-file": Target(decode_epochs),
    "queue-entries": Target(_queue),
    "index-header": Target(decode_index_header),
    "queue-file": Target(_opened_with(_QUEUE_FILE, SMALL.mapped_file_size_consume_queue), (StoreError,)),
    "index-file": Target(_opened_with(_INDEX_FILE, _INDEX_BYTES), (StoreError,)),
    "checkpoint": Target(_checkpoint),
    "truncation-note": Target(_note),
    "deleted-topics": Target(decode_deletions),
    "reset-order": Target(decode_order),
    "registry-changes": Target(decode_changes, (RemoteProtocolError, ValueError)),
    "reading-notes": Target(_all_of(decode_slave_note, decode_master_note)),
    "reading-records": Target(
        _all_of(decode_assignment, decode_presence, decode_read_record, error=BadReadingRecord)
    ),
    "java-json": Target(_all_of(*map(_java_json, (OffsetTable, ConsumerOffsetTable, HARuntimeInfo)))),
    "messages": Target(lambda data: decode_messages(data, _QUEUE)),
    "config-table": Target(_in_file(f"config/{FILE_NAMES[ConsumerOffsetTable]}", _tables_of), (StoreError,)),
    "kv-file": Target(
        _in_file("kv.json", lambda home: KVFile(home / "kv.json").load()), (StoreError, ConfigError)
    ),
    "console-users": Target(_in_file("users", lambda home: read_users(home / "users")), (ConfigError,)),
    "client-offsets": Target(
        _in_file("offsets.json", lambda home: OffsetFile(home / "offsets.json").read()), (StoreError,)
    ),
    "incarnation": Target(
        _in_file("incarnation", lambda home: Incarnation(Disk(), home).load()), (StoreError,)
    ),
    "identity": Target(_in_file("brokerIdentity", _identity), (StoreError,)),
    "timer-checkpoint": Target(
        _in_file("config/timercheck", lambda home: TimerCheckpointFile(Disk(), home).load()), (StoreError,)
    ),
    "reset-plan": Target(_in_file("plan.json", lambda home: read_plan(home / "plan.json")), (ResetRefused,)),
    "history": Target(
        _in_file("p.jsonl", lambda home: list(read_history(home / "p.jsonl"))), (HistoryError,)
    ),
    "group-configs": Target(read_group_configs, (ConfigError,)),
    "topic-configs": Target(read_topic_configs, (ConfigError,)),
    "retry-policy": Target(_text(read_retry_policy), (ConfigError,)),
    "reset-journal": Target(read_lines, BAD_JSON),
    "json-lines": Target(
        _in_file("lines", lambda home: JsonLines(Disk(), home / "lines", AuditEntry).last(100))
    ),
    "standing": Target(_in_file(f"config/{STANDING}", _standing), (StoreError,)),
    "scrub-note": Target(_in_file(SCRUB_NOTE, lambda home: ScrubNoteFile(Disk(), home).load())),
    "diverged-report": Target(_in_file(REPORT_NAME, read_report), (StoreError,)),
    "audit-log": Target(_in_file("audit", lambda home: AuditLog(home / "audit").last)),
    "password": Target(_text(is_hash)),
    "certificates": Target(_in_file("made.json", lambda home: CertificateDesk(home, SystemClock()).list())),
    "record-walk": Target(_fed_in_pieces(lambda: RecordWalk(0, file_bytes=_FILE_BYTES))),
    "ha-autoswitch-forms": Target(_all_of(decode_address_handshake, decode_long_answer, decode_compact_head)),
    "spark-records": Target(_walked),
    "spark-bound": Target(
        _text(lambda text: read_bound("startingOffsets", text, (EARLIEST, LATEST))), (BadOption,)
    ),
    "spark-about": Target(_in_file(f"{OURS}/{ABOUT}", open_about), (SparkError,)),
    "spark-certificate": Target(_in_file("c.json", lambda home: load(home / "c.json")), (SparkError,)),
    "spark-samples": Target(_in_file("lag", lambda home: read_samples(home / "lag")), (SparkError,)),
    "spark-ledger": Target(_in_file("l", lambda home: read_ledger_file(home / "l")), (SparkError,)),
    "traces": Target(_text(decode_traces)),
    "console-body": Target(_console),
    "group-record": Target(lambda data: decode_group(data, path="/groups/g"), (BadGroupRecord,)),
    "sql": Target(_text(_condition), (BadExpression,)),
    "tags": Target(_text(lambda text: subscribe("T", text, sub_version=1)), (ValueError,)),
    "plain-acl": Target(_acl, (ValueError,)),
    "config-file": Target(_text(lambda text: parse_properties(text, source="file")), (ConfigError,)),
}
