"""How a slave and a master of ours meet: who both are, before a byte of the log moves.

    slave                                                      master
      SlaveHello  group, broker id, slave nonce      ------->
                                                     <-------  GREETING, at the hello's first four bytes
                                                     <-------  MasterHello  master nonce, incarnation,
                                                               log range, epoch, MASTER PROOF
      SlaveProof  incarnation followed, log range,
                  epoch, checksum of the log's tail,
                  kind of its acks, size of its
                  files, whether it only learns,
                  SLAVE PROOF                        ------->
                                                     <-------  Verdict  start offset, or a reason, PROOF
                                                     <======>  frames of ha_link

Where a controller names the master, its first answer to a slave that fits is AlignFirst with the epochs of
its log. The slave cuts off what only its own log has, and sends SlaveProof again, of the log as it is then.

Here are the messages; ha_proof has the proofs of a shared secret. Under mutual TLS the transport has
proven both sides: the messages say so in each head and carry no proof. Which of the two holds, the
caller decides; a message of the other kind is refused.

A slave that does not know whether its master is one of Tanist's sends the first four bytes alone and waits
for the greeting. A master of RocketMQ is silent: it does nothing before it has eight, and what it would make
of them, an offset that is believed, must never be sent to it.

Until a side is proven it can make us hold MAX_UNPROVEN_BYTES and no more. The first byte is one
with which no slave of RocketMQ can begin: a classic one would report a negative offset.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.epochs import Epoch
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_link import AckKind
from tanist.protocol.ha_stream import gather

MAGIC: Final = b"\xd4TAN"
GREETING: Final = MAGIC
"""What a master says to the first bytes of a hello, so that a slave knows whom it speaks to."""
VERSION: Final = 1
MAX_UNPROVEN_BYTES: Final = 256
HELLO_S: Final = 3.0
"""So long the other side may take to prove who it is."""
ALIGN_S: Final = 60.0
"""So long a slave that is proven may take to cut its log."""
MAX_GROUP_BYTES: Final = 127
MAX_REASON_BYTES: Final = 128
MAX_TAIL_BYTES: Final = 8 << 20
"""Room for one record at the default limit of 4 MiB, and milliseconds of the master's time."""

NONCE_BYTES: Final = 16
INCARNATION_BYTES: Final = 16
PROOF_BYTES: Final = 32
NO_INCARNATION: Final = bytes(INCARNATION_BYTES)
"""What a slave names that has followed no master yet."""

# magic, version, kind, authentication, size_bytes (of the whole message)
_HEAD = struct.Struct(">4sBBBH")
# broker_id, nonce, group_bytes
_SLAVE_HELLO = struct.Struct(">q16sB")
# nonce, incarnation, log_start, log_end, epoch
_MASTER_HELLO = struct.Struct(">16s16sqqi")
# incarnation, log_start, log_end, epoch, tail_crc, tail_bytes, ack_kind, file_bytes, is_learner
_SLAVE_PROOF = struct.Struct(">16sqqiIIBqB")
# reason, start_offset, text_bytes
_VERDICT = struct.Struct(">BqB")
# epoch, start
_EPOCH = struct.Struct(">iq")
MAX_MESSAGE_BYTES: Final = (1 << 16) - 1
"""What a head can say."""
MAX_EPOCHS: Final = (MAX_MESSAGE_BYTES - _HEAD.size - PROOF_BYTES) // _EPOCH.size
"""So many epochs a master tells at most: its newest."""


class MessageKind(IntEnum):
    """The messages, in the order in which they are sent but for the last, which comes before a verdict."""

    SLAVE_HELLO = 1
    MASTER_HELLO = 2
    SLAVE_PROOF = 3
    VERDICT = 4
    ALIGN_FIRST = 5


class Authentication(IntEnum):
    """What proves the two sides to each other."""

    MUTUAL_TLS = 1
    SECRET = 2
    NONE = 3
    """Nothing does: both sides were told to believe whoever reaches the port."""


class Refusal(IntEnum):
    """Why a master does not serve a slave. Never 0, which stands for accepted."""

    NOT_MASTER = 1
    WRONG_GROUP = 2
    UNKNOWN_REPLICA = 3
    NOT_PROVEN = 4
    OTHER_INCARNATION = 5
    STALE_EPOCH = 6
    DIVERGED_LOG = 7
    AHEAD_OF_MASTER = 8
    BEFORE_LOG_START = 9
    TOO_BUSY = 10
    OTHER_FILE_SIZE = 11


class SlaveHello(NamedTuple):
    """Which replica of which group asks to follow. The nonce is fresh and random."""

    group: str
    broker_id: int
    nonce: bytes


class MasterHello(NamedTuple):
    """What the master holds, and which incarnation of the store it is. The nonce is fresh and random."""

    nonce: bytes
    incarnation: bytes
    log_start: LogOffset
    log_end: LogOffset
    epoch: int


class SlaveProof(NamedTuple):
    """What a slave holds. ``tail_crc`` is the CRC-32 of the last ``tail_bytes`` bytes before ``log_end``."""

    incarnation: bytes
    log_start: LogOffset
    log_end: LogOffset
    epoch: int
    tail_crc: int
    tail_bytes: int
    ack_kind: AckKind
    file_bytes: int
    """Of each of its files: records end with them, so both sides have the same."""
    is_learner: bool = False
    """Whether it only follows: nobody waits for it, and it is never elected."""


class Accepted(NamedTuple):
    """The log comes from here on."""

    start_offset: LogOffset


class Refused(NamedTuple):
    """The link ends here. The text is for the slave's operator, at most MAX_REASON_BYTES of it."""

    reason: Refusal
    text: str


class AlignFirst(NamedTuple):
    """The newest epochs of the master's log, oldest first. The slave cuts its own where they differ."""

    epochs: tuple[Epoch, ...]


Verdict: TypeAlias = Accepted | Refused | AlignFirst


def encode_slave_hello(hello: SlaveHello, authentication: Authentication) -> bytes:
    """The whole message: it carries no proof."""
    group = hello.group.encode("utf-8", "replace")
    if not _is_group(hello.group, group) or hello.broker_id < 0 or len(hello.nonce) != NONCE_BYTES:
        raise LocalProtocolError(f"{hello} can not be sent")
    body = _SLAVE_HELLO.pack(hello.broker_id, hello.nonce, len(group)) + group
    return _message(MessageKind.SLAVE_HELLO, authentication, body)


def encode_master_hello(hello: MasterHello, authentication: Authentication) -> bytes:
    """Everything but the proof: with a secret, append its ``master_proof``."""
    fault = _master_hello_fault(hello)
    if fault or len(hello.nonce) != NONCE_BYTES:
        raise LocalProtocolError(f"{hello} can not be sent: {fault or 'the nonce is too short'}")
    return _message(MessageKind.MASTER_HELLO, authentication, _MASTER_HELLO.pack(*hello))


def encode_slave_proof(proof: SlaveProof, authentication: Authentication) -> bytes:
    """Everything but the proof: with a secret, append its ``slave_proof``."""
    fault = _slave_proof_fault(proof)
    if fault:
        raise LocalProtocolError(f"{proof} can not be sent: {fault}")
    return _message(MessageKind.SLAVE_PROOF, authentication, _SLAVE_PROOF.pack(*proof))


def encode_verdict(verdict: Verdict, authentication: Authentication) -> bytes:
    """Everything but the proof: with a secret, append its ``verdict_proof``. A long text is cut."""
    match verdict:
        case Accepted(start_offset):
            if start_offset < 0:
                raise LocalProtocolError(f"{verdict} can not be sent")
            body = _VERDICT.pack(0, start_offset, 0)
        case Refused(reason, text):
            raw = text.encode("utf-8", "replace")[:MAX_REASON_BYTES].decode("utf-8", "ignore").encode()
            body = _VERDICT.pack(reason, 0, len(raw)) + raw
        case AlignFirst(epochs):
            if len(epochs) > MAX_EPOCHS or not _are_rising(epochs):
                raise LocalProtocolError(f"{len(epochs)} epochs, of which the last is {epochs[-1:]}")
            body = b"".join(_EPOCH.pack(*epoch) for epoch in epochs)
            return _message(MessageKind.ALIGN_FIRST, authentication, body)
    return _message(MessageKind.VERDICT, authentication, body)


def decode_slave_hello(raw: bytes, authentication: Authentication) -> SlaveHello:
    """Who claims to call. Nothing of it is proven yet."""
    body = _body(raw, MessageKind.SLAVE_HELLO, authentication, _SLAVE_HELLO.size)
    broker_id, nonce, group_bytes = _SLAVE_HELLO.unpack_from(body)
    group = _text(body[_SLAVE_HELLO.size :], group_bytes)
    if not _is_group(group, group.encode()) or broker_id < 0:
        raise RemoteProtocolError(f"a hello from replica {broker_id} of group {group!r}")
    return SlaveHello(group, broker_id, nonce)


def decode_master_hello(raw: bytes, authentication: Authentication) -> MasterHello:
    """The fields alone. With a secret they mean nothing before the proof is checked."""
    body = _body(raw, MessageKind.MASTER_HELLO, authentication, _MASTER_HELLO.size)
    hello = MasterHello._make(_MASTER_HELLO.unpack(_exactly(body, _MASTER_HELLO.size)))
    fault = _master_hello_fault(hello)
    if fault:
        raise RemoteProtocolError(fault)
    return hello


def decode_slave_proof(raw: bytes, authentication: Authentication) -> SlaveProof:
    """The fields alone. With a secret they mean nothing before the proof is checked."""
    body = _body(raw, MessageKind.SLAVE_PROOF, authentication, _SLAVE_PROOF.size)
    proof = SlaveProof._make(_SLAVE_PROOF.unpack(_exactly(body, _SLAVE_PROOF.size)))
    fault = _slave_proof_fault(proof)
    if fault:
        raise RemoteProtocolError(fault)
    return proof._replace(ack_kind=AckKind(proof.ack_kind), is_learner=bool(proof.is_learner))


def decode_verdict(raw: bytes, authentication: Authentication) -> Verdict:
    """The fields alone. With a secret they mean nothing before the proof is checked."""
    if _head(raw)[0] == MessageKind.ALIGN_FIRST:
        return _decode_align_first(raw, authentication)
    body = _body(raw, MessageKind.VERDICT, authentication, _VERDICT.size)
    reason, start_offset, text_bytes = _VERDICT.unpack_from(body)
    text = _text(body[_VERDICT.size :], text_bytes)
    if reason == 0:
        if start_offset < 0 or text:
            raise RemoteProtocolError(f"a slave is accepted from {start_offset} with text {text!r}")
        return Accepted(LogOffset(start_offset))
    if reason > max(Refusal) or start_offset != 0 or text_bytes > MAX_REASON_BYTES:
        raise RemoteProtocolError(
            f"a slave is refused for reason {reason} at {start_offset} in {text_bytes} bytes"
        )
    return Refused(Refusal(reason), text)


def _decode_align_first(raw: bytes, authentication: Authentication) -> AlignFirst:
    body = _body(raw, MessageKind.ALIGN_FIRST, authentication, 0)
    if len(body) % _EPOCH.size:
        raise RemoteProtocolError(f"{len(body)} bytes of epochs that take {_EPOCH.size} each")
    epochs = tuple(Epoch(epoch, LogOffset(start)) for epoch, start in _EPOCH.iter_unpack(body))
    if not _are_rising(epochs):
        raise RemoteProtocolError(f"{len(epochs)} epochs that do not all rise")
    return AlignFirst(epochs)


def signed_part(raw: bytes) -> bytes:
    """A message without its proof, whether or not the proof is there yet."""
    kind, authentication, size_bytes = _head(raw)
    return raw[: size_bytes - _proof_bytes(kind, authentication)]


class HelloReader:
    """One direction of the exchange: bytes in, one whole message at a time out."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._allowed_bytes = MAX_UNPROVEN_BYTES

    def feed(self, data: bytes | memoryview) -> tuple[bytes | None, memoryview]:
        """The next message once it is whole, and what of ``data`` lies behind it.

        Refuses what can not become a message as soon as its bytes show it.
        """
        view = gather(self._held, memoryview(data), _HEAD.size)
        if not MAGIC.startswith(self._held[: len(MAGIC)]):
            raise RemoteProtocolError(f"{self._held[: len(MAGIC)].hex()} does not open a hello")
        if len(self._held) < _HEAD.size:
            return None, view
        size_bytes = _head(self._held)[2]
        if size_bytes > self._allowed_bytes:
            raise RemoteProtocolError(
                f"a hello message of {size_bytes} bytes where {self._allowed_bytes} are allowed"
            )
        view = gather(self._held, view, size_bytes)
        if len(self._held) < size_bytes:
            return None, view
        message = bytes(self._held)
        self._held.clear()
        self._allowed_bytes -= size_bytes
        return message, view

    @property
    def has_magic(self) -> bool:
        """Whether the next message has begun, as far as its magic."""
        return len(self._held) >= len(MAGIC)

    def trust_peer(self, next_bytes: int = MAX_UNPROVEN_BYTES) -> None:
        """The peer is proven: what it sent so far no longer counts against the bound, which is this now."""
        self._allowed_bytes = next_bytes


def _message(kind: MessageKind, authentication: Authentication, body: bytes) -> bytes:
    size_bytes = _HEAD.size + len(body) + _proof_bytes(kind, authentication)
    return _HEAD.pack(MAGIC, VERSION, kind, authentication, size_bytes) + body


def _proof_bytes(kind: int, authentication: int) -> int:
    # A slave has nothing to prove itself by before it has seen the master's nonce.
    is_proven = authentication == Authentication.SECRET and kind != MessageKind.SLAVE_HELLO
    return PROOF_BYTES if is_proven else 0


def _head(raw: bytes | bytearray) -> tuple[int, int, int]:
    """Kind, authentication and size of a message."""
    if len(raw) < _HEAD.size:
        raise RemoteProtocolError(f"{len(raw)} bytes are too few for a hello message")
    magic, version, kind, authentication, size_bytes = _HEAD.unpack_from(raw)
    if magic != MAGIC or version != VERSION:
        raise RemoteProtocolError(
            f"a hello of version {version} (magic {magic.hex()}); this side speaks {VERSION}"
        )
    if size_bytes < _HEAD.size:
        raise RemoteProtocolError(f"a hello message of {size_bytes} bytes")
    return kind, authentication, size_bytes


def _body(raw: bytes, kind: MessageKind, authentication: Authentication, min_bytes: int) -> bytes:
    """What lies between head and proof of a message of exactly this kind, at least ``min_bytes``."""
    found_kind, found_authentication, size_bytes = _head(raw)
    if found_kind != kind or found_authentication != authentication:
        raise RemoteProtocolError(
            f"a hello message of kind {found_kind}, authentication {found_authentication}; "
            f"{kind.name}, {authentication.name} was due"
        )
    end = size_bytes - _proof_bytes(kind, authentication)
    if size_bytes != len(raw) or end < _HEAD.size + min_bytes:
        raise RemoteProtocolError(f"a {kind.name} message that says {size_bytes} bytes and has {len(raw)}")
    return raw[_HEAD.size : end]


def _exactly(body: bytes, size_bytes: int) -> bytes:
    if len(body) != size_bytes:
        raise RemoteProtocolError(f"{len(body)} bytes of fields where {size_bytes} were due")
    return body


def _text(raw: bytes, size_bytes: int) -> str:
    try:
        return _exactly(raw, size_bytes).decode()
    except UnicodeDecodeError as error:
        raise RemoteProtocolError("a text that is not UTF-8") from error


def _is_group(group: str, raw: bytes) -> bool:
    # It comes from a peer that has proven nothing, and goes into our log lines.
    return 1 <= len(raw) <= MAX_GROUP_BYTES and group.isprintable()


def _are_rising(epochs: tuple[Epoch, ...]) -> bool:
    """Whether each is newer than the one before, and begins behind it."""
    before = Epoch(-1, LogOffset(-1))
    for epoch in epochs:
        if not (epoch.epoch > before.epoch and epoch.start > before.start):
            return False
        before = epoch
    return True


def _range_fault(log_start: int, log_end: int, epoch: int) -> str | None:
    if not 0 <= log_start <= log_end or epoch < 0:
        return f"a log range [{log_start}, {log_end}) in epoch {epoch}"
    return None


def _master_hello_fault(hello: MasterHello) -> str | None:
    if len(hello.incarnation) != INCARNATION_BYTES or hello.incarnation == NO_INCARNATION:
        return "a master without incarnation"
    return _range_fault(hello.log_start, hello.log_end, hello.epoch)


def _slave_proof_fault(proof: SlaveProof) -> str | None:
    if len(proof.incarnation) != INCARNATION_BYTES or proof.ack_kind not in (
        AckKind.RECEIVED,
        AckKind.FLUSHED,
    ):
        return f"an incarnation of {len(proof.incarnation)} bytes, acks of kind {proof.ack_kind}"
    if proof.is_learner not in (0, 1):
        return f"{proof.is_learner} for whether it only learns"
    if proof.file_bytes < 1:
        return f"files of {proof.file_bytes} bytes"
    log_bytes = proof.log_end - proof.log_start
    if not 0 <= proof.tail_bytes <= min(log_bytes, MAX_TAIL_BYTES):
        return f"a tail of {proof.tail_bytes} bytes of a log of {log_bytes}"
    if log_bytes and not proof.tail_bytes:
        return "a log that is not empty, and no checksum of its tail"
    return _range_fault(proof.log_start, proof.log_end, proof.epoch)
