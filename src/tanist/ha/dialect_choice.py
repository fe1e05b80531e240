"""What a slave speaks with its master: Tanist's own dialect wherever the master knows it. Pure.

A master of RocketMQ says nothing to the first four bytes of our hello. So with ``haCompatibility`` those are
tried first, and a master that did not greet us is spoken to in RocketMQ's dialect for a while. Then it is
asked again: the master may have become one of Tanist's. One that is known to be Tanist's is asked several
times: it may only be stuck, or about to stop, and on a link of RocketMQ's its slave counts for less.

To wait in vain takes seconds, so a new master is asked at its port for clients first, whose answers tell in
which language it is written.
"""

from dataclasses import dataclass, field

from tanist.ha.replicas import Dialect

ROCKETMQ_S = 600.0
"""For so long a master that did not greet us is taken for one of RocketMQ's."""

MAX_VAIN = 5
"""So many times a master is asked in vain that is known to be Tanist's."""


@dataclass(slots=True)
class DialectChoice:
    """The choice of one slave."""

    rocketmq_dialect: Dialect | None
    """What is spoken with masters of RocketMQ; None if they are not followed."""
    _known_address: str | None = field(default=None, init=False)
    """Of the master that let us in last, in our own dialect."""
    _vain_count: int = field(default=0, init=False)
    _silent_address: str | None = field(default=None, init=False)
    _silent_s: float = field(default=0.0, init=False)

    def next(self, address: str, now_s: float) -> Dialect:
        """What to speak with the master at this address."""
        is_silent = address == self._silent_address and now_s - self._silent_s < ROCKETMQ_S
        return self.rocketmq_dialect if self.rocketmq_dialect is not None and is_silent else Dialect.TANIST

    def is_open(self, address: str, now_s: float) -> bool:
        """Whether it would help to know who the master at this address is."""
        is_unknown = address != self._known_address and self.next(address, now_s) is Dialect.TANIST
        return self.rocketmq_dialect is not None and is_unknown

    def on_told(self, address: str, now_s: float) -> None:
        """The master at this address is one of RocketMQ's."""
        self._silent_address, self._silent_s = address, now_s

    def on_accepted(self, address: str) -> None:
        """The master let us in, in our own dialect."""
        self._known_address, self._vain_count = address, 0

    def on_silence(self, address: str, dialect: Dialect, now_s: float) -> bool:
        """The master let us wait in vain; whether another dialect is tried next."""
        if self.rocketmq_dialect is None:
            return False
        if dialect is Dialect.TANIST and address == self._known_address:
            self._vain_count += 1
            if self._vain_count < MAX_VAIN:
                return False
        # One of Tanist's that was stuck for a while is silent too, and then closes on what it does not know.
        self._silent_address = address if dialect is Dialect.TANIST else None
        self._silent_s = now_s
        return True
