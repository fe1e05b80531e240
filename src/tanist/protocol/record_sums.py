"""Passes over records that are sound: whole, where they say they lie, and with the body that was summed."""

from tanist.errors import RemoteProtocolError
from tanist.protocol.compiled import native
from tanist.protocol.record import check_record


def pass_sound(view: bytes | memoryview, log_offset: int) -> int:
    """How many bytes of sound records begin with ``view``, which lies at ``log_offset`` of the log.

    It ends before whatever is no sound record of the usual kind: ``check_record`` says what that is. In C
    others run meanwhile.
    """
    if native is not None:
        return native.pass_sound(view, log_offset)
    whole, position = memoryview(view), 0
    try:
        while size := check_record(whole, position, log_offset=log_offset + position, is_flushed=True):
            position += size
    except RemoteProtocolError:
        pass
    return position
