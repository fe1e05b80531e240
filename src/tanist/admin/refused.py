"""What operators' actions refuse by themselves, before or after they have asked."""

from tanist.errors import MQError


class NotThere(MQError):
    """What was named does not exist; the text says what was looked for, and where."""


class Unsafe(MQError):
    """It would be unsafe now, and nothing was changed; the text says why."""
