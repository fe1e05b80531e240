"""What one broker proves itself by on a link, and checks its peer by. Pure."""

from dataclasses import dataclass, field

from tanist.protocol import ha_proof
from tanist.protocol.ha_hello import Authentication


@dataclass(frozen=True, slots=True)
class HaKeys:
    """The group that both ends belong to, and the secret that both know."""

    group: str
    authentication: Authentication
    secret: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        assert bool(self.secret) == (self.authentication is Authentication.SECRET)

    def prove_master(self, *, slave_hello: bytes, master_hello: bytes) -> bytes:
        """What follows the master's hello; nothing without a secret."""
        if not self.secret:
            return b""
        return ha_proof.master_proof(self.secret, slave_hello=slave_hello, master_hello=master_hello)

    def is_master(self, *, slave_hello: bytes, master_hello: bytes) -> bool:
        """Whether the master has proven itself as far as there is anything to prove."""
        return self._matches(
            self.prove_master(slave_hello=slave_hello, master_hello=master_hello), master_hello
        )

    def prove_slave(self, *, slave_hello: bytes, master_hello: bytes, slave_proof: bytes) -> bytes:
        if not self.secret:
            return b""
        return ha_proof.slave_proof(
            self.secret, slave_hello=slave_hello, master_hello=master_hello, slave_proof=slave_proof
        )

    def is_slave(self, *, slave_hello: bytes, master_hello: bytes, slave_proof: bytes) -> bool:
        """Whether the slave has proven itself as far as there is anything to prove."""
        expected = self.prove_slave(
            slave_hello=slave_hello, master_hello=master_hello, slave_proof=slave_proof
        )
        return self._matches(expected, slave_proof)

    def prove_verdict(
        self, *, slave_hello: bytes, master_hello: bytes, slave_proof: bytes, verdict: bytes
    ) -> bytes:
        if not self.secret:
            return b""
        return ha_proof.verdict_proof(
            self.secret,
            slave_hello=slave_hello,
            master_hello=master_hello,
            slave_proof=slave_proof,
            verdict=verdict,
        )

    def is_verdict(
        self, *, slave_hello: bytes, master_hello: bytes, slave_proof: bytes, verdict: bytes
    ) -> bool:
        """Whether the verdict is the master's, as far as there is anything to prove."""
        expected = self.prove_verdict(
            slave_hello=slave_hello, master_hello=master_hello, slave_proof=slave_proof, verdict=verdict
        )
        return self._matches(expected, verdict)

    def _matches(self, expected: bytes, message: bytes) -> bool:
        return not self.secret or ha_proof.check_proof(expected, ha_proof.proof_of(message))
