"""Attacks on the HA port of a pair in this process, each of which has to be in vain."""

import dataclasses
from typing import Final

from tanist.protocol.ha_hello import MAX_UNPROVEN_BYTES
from tests.support.attacked import try_attack
from tests.support.ha_attacks import Attack, Ground
from tests.support.ha_pair import FILE_BYTES, Pair

PATIENCE_S: Final = 10.0


def ground_of(pair: Pair) -> Ground:
    session = bytes(pair.cable.calls[0])
    return Ground(log_start=FILE_BYTES, log_end=pair.master.status().log_end, session=session)


def hurried(attack: Attack) -> Attack:
    """The same, for a master that does not need a second to see what came."""
    is_slow = attack.name == "one byte a second"
    return attack if is_slow else dataclasses.replace(attack, pause_s=min(attack.pause_s, 0.1))


def assert_in_vain(pair: Pair, attack: Attack, *, max_heard_bytes: int = MAX_UNPROVEN_BYTES) -> None:
    """Play an attack. On each connection the intruder may hear so much: what is said to a stranger."""
    ground = ground_of(pair)
    before = pair.master.status()
    seen = try_attack(pair.master, pair.cable, attack, ground, patience_s=PATIENCE_S, listen_s=0.05)
    calls = len(attack.calls(ground))
    # Nothing was believed, and nothing was sent but a hello to who said hello.
    assert (seen.believed, seen.lags, seen.in_sync_count) == ([], [], 1)
    assert not seen.is_log_heard
    assert seen.heard_bytes <= calls * max_heard_bytes
    # The real slave keeps its connection and its place, and no send is answered on the intruder's word.
    assert seen.beside_slave.status == "SEND_OK"
    assert seen.is_slave_in_step
    assert seen.without_slave.status == seen.after.status == "SLAVE_NOT_AVAILABLE"
    # All its connections are closed by the master, and shown with the reason.
    assert seen.closed_after_s is not None
    after = pair.master.status()
    assert after.refused_count == before.refused_count + calls
    assert all(peer.reason for peer in after.refused[-calls:])
