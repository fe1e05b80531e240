"""The tries of one send: what failed, whether to try again, and what to tell in the end. Pure."""

from typing import NoReturn

from tanist.backoff import Backoff
from tanist.client.errors import NoRoute, SendFailed
from tanist.errors import (
    ConnectFailed,
    ConnectionLost,
    MQError,
    RemotingError,
    RequestTimeout,
    ResponseError,
)
from tanist.protocol.response_errors import (
    BrokerBusy,
    BrokerFailed,
    BrokerLeaving,
    FlowControlled,
    NotMaster,
    NotWritableNow,
)

_OF_THE_BROKER = (*(RemotingError, BrokerFailed, BrokerBusy, NotWritableNow, FlowControlled, BrokerLeaving),)
_MAYBE_DONE = (ConnectionLost, RequestTimeout)
_NOT_TAKEN = (ConnectFailed, NotMaster, BrokerLeaving, NoRoute)
"""There is no master that would take the message now: one that stops, starts, or is being replaced."""
_MOST_PAUSE_S = 0.5


def is_of_the_broker(error: MQError) -> bool:
    """Whether an error tells something about its broker, and not only about the topic or the message."""
    return isinstance(error, _OF_THE_BROKER)


def is_route_old(error: MQError) -> bool:
    """Whether an error is a reason to ask for the routes again."""
    return isinstance(error, RemotingError | NoRoute) or (
        isinstance(error, ResponseError) and error.refresh_route
    )


def is_master_gone(error: MQError) -> bool:
    """Whether an error is a reason to look for another master of the same broker."""
    return isinstance(error, (*_NOT_TAKEN, *_MAYBE_DONE, NotWritableNow))


class Attempts:
    """One send's failures so far.

    A try that nobody took is not counted, if any may follow it at all: a send waits for a broker that is
    started anew, or for the master that comes next, as long as its time lasts.
    """

    def __init__(self, topic: str, *, retries: int, deadline_s: float, may_store_twice: bool = True) -> None:
        self._topic = topic
        self._may_store_twice = may_store_twice
        self.left = retries
        """How many tries may follow."""
        self._deadline_s = deadline_s
        self._failures: list[tuple[str, MQError]] = []
        self._may_be_stored = False
        self._may_retry = retries > 0
        self._failed_at: set[tuple[str, str | None]] = set()
        self._backoff = Backoff(most_s=_MOST_PAUSE_S)

    @property
    def failed_broker(self) -> str | None:
        """Where the last try was."""
        return self._failures[-1][0] if self._failures else None

    def on_failure(
        self, broker_name: str, error: MQError, *, now_s: float, address: str | None = None
    ) -> None:
        """Note a failure. Returns if there is reason, time and a try left for another; else raises.

        ``address`` is where the broker's master was when it was tried. A refusal that no other broker would
        take back is raised as it is, unless an earlier try may have stored the message: then the caller has
        to know that.
        """
        is_final = isinstance(error, ResponseError) and not error.retriable
        if is_final and not self._may_be_stored:
            raise error
        is_final = is_final or (isinstance(error, _MAYBE_DONE) and not self._may_store_twice)
        is_counted = not (isinstance(error, _NOT_TAKEN) and self._may_retry)
        if is_final or (is_counted and not self.left) or now_s >= self._deadline_s:
            self.give_up(broker_name, error)
        self.left -= is_counted
        self._failed_at.add((broker_name, address))
        self._note(broker_name, error)

    def needs_pause(self, broker_name: str, address: str | None) -> bool:
        """Whether a try at this broker has to wait: one failed there before, under the same address."""
        return (broker_name, address) in self._failed_at

    def next_pause_s(self, chance: float) -> float:
        """How long to wait before the same broker is asked again; ``chance`` is a number in [0, 1)."""
        return self._backoff.next_s(chance)

    def give_up(self, broker_name: str, error: MQError) -> NoReturn:
        """Raise what tells of all failures, this last one included."""
        self._note(broker_name, error)
        self.end()

    def end(self) -> NoReturn:
        """Raise what tells of all failures so far."""
        error = self._failures[-1][1]
        raise SendFailed(self._topic, self._failures, may_be_stored=self._may_be_stored) from error

    def _note(self, broker_name: str, error: MQError) -> None:
        if isinstance(error, _NOT_TAKEN) and self._is_last(broker_name, error):
            self._failures.pop()  # A send that waits long meets the same again and again.
        self._failures.append((broker_name, error))
        self._may_be_stored = self._may_be_stored or isinstance(error, _MAYBE_DONE)

    def _is_last(self, broker_name: str, error: MQError) -> bool:
        return bool(self._failures) and (broker_name, str(error)) == (
            self._failures[-1][0],
            str(self._failures[-1][1]),
        )
