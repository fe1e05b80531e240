"""How often a password may be tried. Pure.

Every failure counts for its address, for its user's name, and for all together. Whoever has used up one
of the three waits until the oldest failure in it is forgotten. A user who is locked out by others'
guesses is let in from an address that did not guess: the count of names is much larger than that of
addresses.
"""

from collections import OrderedDict, deque

WINDOW_S = 60.0
PER_ADDRESS = 5
PER_USER = 20
FOR_ALL = 200
_MAX_SUBJECTS = 10_000


class LoginLimit:
    """Counts failures, and says how long to wait."""

    def __init__(self, *, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._failures: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def wait_s(self, address: str, user: str, *, now_s: float) -> float:
        """How long nobody with this address or name is let try; 0 if at once."""
        waits = [
            self._wait_of(subject, most, now_s)
            for subject, most in (
                (("address", address), PER_ADDRESS),
                (("user", user), PER_USER),
                (("all", ""), FOR_ALL),
            )
        ]
        return max(waits)

    def on_failure(self, address: str, user: str, *, now_s: float) -> None:
        """Note a wrong password."""
        self._forget(now_s)
        for subject, most in (
            (("address", address), PER_ADDRESS),
            (("user", user), PER_USER),
            (("all", ""), FOR_ALL),
        ):
            times = self._failures.setdefault(subject, deque(maxlen=most))
            times.append(now_s)
            self._failures.move_to_end(subject)
        while len(self._failures) > _MAX_SUBJECTS:
            self._failures.popitem(last=False)

    def __len__(self) -> int:
        """How many addresses and names are remembered."""
        return len(self._failures)

    def on_success(self, address: str) -> None:
        """Note a right one: slips before it are forgiven to this address, guesses at a name are not."""
        self._failures.pop(("address", address), None)

    def _forget(self, now_s: float) -> None:
        """Drop those whose last failure is over; they stand first."""
        while self._failures:
            subject, times = next(iter(self._failures.items()))
            if times and now_s - times[-1] < self._window_s:
                return
            del self._failures[subject]

    def _wait_of(self, subject: tuple[str, str], most: int, now_s: float) -> float:
        times = self._failures.get(subject)
        if times is None:
            return 0.0
        while times and now_s - times[0] >= self._window_s:
            times.popleft()
        return 0.0 if len(times) < most else self._window_s - (now_s - times[0])
