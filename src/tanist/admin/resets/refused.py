"""Why nothing was done."""

from tanist.errors import MQError


class ResetRefused(MQError):
    """What was asked for can not be done, or must not; nothing was changed. The text says what to do."""
