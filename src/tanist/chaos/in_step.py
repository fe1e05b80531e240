"""Whether the replicas of a group hold the same, by what each says of itself. Pure."""

from tanist.errors import MQError
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.up.plan import BROKERS


def are_in_step(states: list[HARuntimeInfo | MQError]) -> bool:
    """Whether there is one master, and its slave holds all that it holds."""
    known = [state for state in states if isinstance(state, HARuntimeInfo)]
    masters = [state for state in known if state.is_master]
    if len(known) != len(BROKERS) or len(masters) != 1:
        return False
    (master,) = masters
    slave = next(state for state in known if not state.is_master)
    is_counted = master.controlled is None or len(master.controlled.sync_state_set) == len(BROKERS)
    return is_counted and bool(master.slaves) and slave.client.log_end == master.log_end


def described(state: HARuntimeInfo | MQError) -> str:
    """What a broker said of itself, in few words."""
    if isinstance(state, MQError):
        return str(state)
    role = "master" if state.is_master else "slave"
    return f"{role} log_end={state.log_end or state.client.log_end} {state.client.reason or ''}".strip()
