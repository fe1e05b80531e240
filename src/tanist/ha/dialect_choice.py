"""What a slave speaks with its master: Tanist's own dialect wherever the master knows it. Pure.

A master of RocketMQ says nothing to the first four bytes of our hello. So with ``haCompatibility=classic``
those are tried first, and a master that did not greet us is spoken to in RocketMQ's dialect for a while. Then
it is asked again: the master may have become one of Tanist's.
"""

from dataclasses import dataclass, field

from tanist.ha.replicas import Dialect

CLASSIC_S = 600.0
"""For so long a master that did not greet us is taken for one of RocketMQ's."""


@dataclass(slots=True)
class DialectChoice:
    """The choice of one slave."""

    is_classic_allowed: bool
    _silent_address: str | None = field(default=None, init=False)
    _silent_s: float = field(default=0.0, init=False)

    def next(self, address: str, now_s: float) -> Dialect:
        """What to speak with the master at this address."""
        is_silent = address == self._silent_address and now_s - self._silent_s < CLASSIC_S
        return Dialect.CLASSIC if self.is_classic_allowed and is_silent else Dialect.TANIST

    def on_silence(self, address: str, dialect: Dialect, now_s: float) -> bool:
        """The master let us wait in vain; whether another dialect is tried next."""
        if not self.is_classic_allowed:
            return False
        # One of Tanist's that was stuck for a while is silent too, and then closes on what it does not know.
        self._silent_address = address if dialect is Dialect.TANIST else None
        self._silent_s = now_s
        return True
