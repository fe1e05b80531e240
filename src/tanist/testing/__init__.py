"""For the test suites of others: a broker and its name server inside the test's own process.

``EmbeddedBroker`` is a context manager, for ``async with`` and for ``with``. ``embedded`` has it,
``arguments`` checks what it is given.
"""

from tanist.testing.embedded import EmbeddedBroker

__all__ = ["EmbeddedBroker"]
