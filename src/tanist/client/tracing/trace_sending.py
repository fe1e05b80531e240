"""Makes the tracer of a producer or a consumer: its traces go out on the client's own connections."""

from tanist.client.sending.outgoing import OutgoingMaker
from tanist.client.sending.sender import Sender
from tanist.client.session.session import Session
from tanist.client.settings import local_address
from tanist.client.tracing.tracer import Tracer, trace_group

_RETRIES = 2


def make_tracer(session: Session, *, group: str, is_consumer: bool) -> Tracer:
    """A tracer for the client of this session. Open it with the session, and close it before."""
    maker = OutgoingMaker(session.clock, local_address=local_address(session.settings.namesrv[0]))
    sender = Sender(session, maker, group=trace_group(group, is_consumer=is_consumer), retries=_RETRIES)
    return Tracer(
        group,
        send=sender.send,
        address_of=session.routes.table.master_of,
        tasks=session.tasks,
        clock=session.clock,
    )
