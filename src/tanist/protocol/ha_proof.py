"""How both ends of a replication link prove that they know the same secret (see ha_hello).

A proof is HMAC-SHA256, keyed with the secret, over a label of its role and every byte both sides
sent so far, its own message included. Both nonces are in there, so a recorded session proves
nothing in another one; the labels differ, so no side's proof can be handed back to it; and who
changes a single bit on the way makes the next proof fail. The secret never travels.

What this does not give: whoever connects gets a master proof to try guesses on, so the secret must
be long and random; and the frames that follow are not keyed, so on a network where others can
write into a connection use mutual TLS.
"""

import hmac
from typing import Final

from tanist.errors import LocalProtocolError
from tanist.protocol.ha_hello import PROOF_BYTES, signed_part

_MASTER_LABEL: Final = b"tanist ha 1 master\0"
_SLAVE_LABEL: Final = b"tanist ha 1 slave\0"
_VERDICT_LABEL: Final = b"tanist ha 1 verdict\0"


def master_proof(secret: bytes, *, slave_hello: bytes, master_hello: bytes) -> bytes:
    """What proves the master. The last message may still lack its proof, here and below."""
    return _proof(secret, _MASTER_LABEL, slave_hello, signed_part(master_hello))


def slave_proof(secret: bytes, *, slave_hello: bytes, master_hello: bytes, slave_proof: bytes) -> bytes:
    """What proves the slave: it covers the master's nonce and proof too."""
    return _proof(secret, _SLAVE_LABEL, slave_hello, master_hello, signed_part(slave_proof))


def verdict_proof(
    secret: bytes, *, slave_hello: bytes, master_hello: bytes, slave_proof: bytes, verdict: bytes
) -> bytes:
    """What proves that the verdict is the master's, on what this slave said."""
    return _proof(secret, _VERDICT_LABEL, slave_hello, master_hello, slave_proof, signed_part(verdict))


def proof_of(message: bytes) -> bytes:
    """The proof that a whole message carries; empty under mutual TLS."""
    return message[len(signed_part(message)) :]


def check_proof(expected: bytes, found: bytes) -> bool:
    """Whether a proof is right, in a time that tells nothing. One that is not there is never right."""
    return len(found) == PROOF_BYTES and hmac.compare_digest(expected, found)


def _proof(secret: bytes, label: bytes, *transcript: bytes) -> bytes:
    if not secret:
        raise LocalProtocolError("an empty secret proves nothing")
    # Every message says its own size, so no two transcripts are the same bytes.
    return hmac.digest(secret, label + b"".join(transcript), "sha256")
