"""A slave and a master that say hello in memory, with somebody between them who may change bytes."""

from collections.abc import Callable

from tanist.errors import RemoteProtocolError
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import (
    MAX_MESSAGE_BYTES,
    Accepted,
    Authentication,
    HelloReader,
    MasterHello,
    Refused,
    SlaveHello,
    SlaveProof,
    decode_master_hello,
    decode_slave_hello,
    decode_slave_proof,
    decode_verdict,
    encode_master_hello,
    encode_slave_hello,
    encode_slave_proof,
    encode_verdict,
)
from tanist.protocol.ha_link import AckKind
from tanist.protocol.ha_proof import check_proof, master_proof, proof_of, slave_proof, verdict_proof

SECRET = b"a long and random secret"
SLAVE_HELLO = SlaveHello("broker-a", 1, b"s" * 16)
MASTER_HELLO = MasterHello(b"m" * 16, b"i" * 16, LogOffset(1024), LogOffset(8192), 3)
SLAVE_PROOF = SlaveProof(
    b"i" * 16, LogOffset(1024), LogOffset(4096), 3, 0xCBF43926, 512, AckKind.FLUSHED, 1 << 30
)

Between = Callable[[int, bytes], bytes]
"""Gets the number of a message and its bytes, and returns what arrives in their place."""


def untouched(_step: int, raw: bytes) -> bytes:
    return raw


def say_hello(
    between: Between = untouched,
    *,
    slave_secret: bytes = SECRET,
    master_secret: bytes = SECRET,
    slave_hello: SlaveHello = SLAVE_HELLO,
    master_hello: MasterHello = MASTER_HELLO,
    verdict: Accepted | Refused | None = None,
) -> list[bytes]:
    """The four messages, as they were sent, if both sides believe each other to the end.

    Raises RemoteProtocolError when one side refuses, or waits for bytes that never come.
    """
    secret = Authentication.SECRET
    at_slave, at_master = HelloReader(), HelloReader()

    first = encode_slave_hello(slave_hello, secret)
    first_arrived = _arrive(at_master, between(0, first))
    decode_slave_hello(first_arrived, secret)

    second = encode_master_hello(master_hello, secret)
    second += master_proof(master_secret, slave_hello=first_arrived, master_hello=second)
    second_arrived = _arrive(at_slave, between(1, second))
    decode_master_hello(second_arrived, secret)
    _believe(master_proof(slave_secret, slave_hello=first, master_hello=second_arrived), second_arrived)
    at_slave.trust_peer(MAX_MESSAGE_BYTES)

    third = encode_slave_proof(SLAVE_PROOF, secret)
    third += slave_proof(slave_secret, slave_hello=first, master_hello=second_arrived, slave_proof=third)
    third_arrived = _arrive(at_master, between(2, third))
    decode_slave_proof(third_arrived, secret)
    _believe(
        slave_proof(master_secret, slave_hello=first_arrived, master_hello=second, slave_proof=third_arrived),
        third_arrived,
    )

    fourth = encode_verdict(verdict or Accepted(LogOffset(4096)), secret)
    fourth += verdict_proof(
        master_secret,
        slave_hello=first_arrived,
        master_hello=second,
        slave_proof=third_arrived,
        verdict=fourth,
    )
    fourth_arrived = _arrive(at_slave, between(3, fourth))
    decode_verdict(fourth_arrived, secret)
    _believe(
        verdict_proof(
            slave_secret,
            slave_hello=first,
            master_hello=second_arrived,
            slave_proof=third,
            verdict=fourth_arrived,
        ),
        fourth_arrived,
    )
    return [first, second, third, fourth]


def _arrive(reader: HelloReader, raw: bytes) -> bytes:
    message, rest = reader.feed(raw)
    if message is None or rest:
        raise RemoteProtocolError("part of a message, or more than one")
    return message


def _believe(expected: bytes, message: bytes) -> None:
    if not check_proof(expected, proof_of(message)):
        raise RemoteProtocolError("not proven")
