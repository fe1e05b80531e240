"""Why the console does not do what it is asked to."""

from tanist.errors import ConnectFailed, MQError, ResponseError


class NotSeenYet(MQError):
    """The console has not looked at the cluster yet."""


class Unknown(MQError):
    """What was asked for is not there."""


class BadRequest(MQError):
    """What was sent makes no sense."""


class Refused(MQError):
    """A change that is not made; the text says why."""


class Partly(MQError):
    """A change that was made in part, or may have been; the text says what was done and what was not."""


def is_nothing_done(error: MQError) -> bool:
    """Whether a change that failed so was surely not made; one that was asked for and not answered may be."""
    return isinstance(error, (Refused, ResponseError, ConnectFailed))
