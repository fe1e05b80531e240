"""Sends that wait for slaves, against a model that looks at all of them at every step."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tanist.ha.replicas import Replica
from tanist.ha.settings import HaSettings
from tanist.protocol.codes import ResponseCode
from tests.support.played_slaves import PlayedSlaves, make_replica

R = ResponseCode
FALLBEHIND, TIMEOUT_S = 500, 3.0

_steps = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 200)),
    st.tuples(st.just("join"), st.integers(1, 4)),
    st.tuples(st.just("leave"), st.integers(1, 4)),
    st.tuples(st.just("ack"), st.integers(1, 4)),
    st.tuples(st.just("tick"), st.integers(1, 20)),
)


@dataclass
class _Naive:
    """Who waits, and what every connected slave holds: each question is asked anew each time."""

    needed: int
    acked: dict[int, int] = field(default_factory=dict[int, int])
    waiting: dict[int, tuple[int, float]] = field(default_factory=dict[int, tuple[int, float]])
    told: list[tuple[int, ResponseCode]] = field(default_factory=list[tuple[int, ResponseCode]])

    def send(self, number: int, end: int, now_s: float) -> None:
        usable = sum(end - acked < FALLBEHIND for acked in self.acked.values())
        if not self.needed:
            self.told.append((number, R.SUCCESS))
        elif usable < self.needed:
            self.told.append((number, R.SLAVE_NOT_AVAILABLE))
        else:
            self.waiting[number] = (end, now_s + TIMEOUT_S)

    def look(self, now_s: float) -> None:
        for number, (end, deadline_s) in list(self.waiting.items()):
            if self.needed <= sum(acked >= end for acked in self.acked.values()):
                self._tell(number, R.SUCCESS)
            elif deadline_s <= now_s:
                self._tell(number, R.FLUSH_SLAVE_TIMEOUT)

    def _tell(self, number: int, code: ResponseCode) -> None:
        del self.waiting[number]
        self.told.append((number, code))


@given(in_sync=st.integers(1, 4), counted=st.sets(st.integers(1, 4)), steps=st.lists(_steps, max_size=60))
def test_every_send_is_told_once_in_order_and_the_truth(
    in_sync: int, counted: set[int], steps: list[tuple[str, int]]
) -> None:
    master = PlayedSlaves(HaSettings(in_sync_replicas=in_sync, ha_slave_fallbehind_max=FALLBEHIND))
    naive = _Naive(needed=in_sync - 1)
    told: list[tuple[int, ResponseCode]] = []
    slaves: dict[int, Replica] = {}
    log_end, now_s = 0, 0.0
    for number, (step, amount) in enumerate(steps):
        slave = slaves.get(amount)
        if step == "send":
            log_end += amount
            naive.send(number, log_end, now_s)
            master.double_write.wait(
                log_end, now_s=now_s, done=lambda code, number=number: told.append((number, code))
            )
        elif step == "tick":
            now_s += amount / 4
            master.double_write.on_tick(now_s)
        elif step == "join":
            # Its older connection, if it has one, is not told to leave: it is forgotten all the same.
            slaves[amount] = make_replica(amount, acked_to=log_end // 2, counts=amount in counted)
            master.table.join(slaves[amount])
            master.double_write.on_acked()
        elif slave is not None and step == "leave":
            del slaves[amount]
            master.leave(slave)
        elif slave is not None:
            master.ack(slave, (slave.acked_to + log_end + 1) // 2)
        naive.acked = {number: one.acked_to for number, one in slaves.items() if number in counted}
        naive.look(now_s)
        assert told == naive.told
        assert len(master.double_write) == len(naive.waiting)
    master.double_write.give_up()
    assert told == naive.told + [(number, R.FLUSH_SLAVE_TIMEOUT) for number in naive.waiting]
    assert len(told) == sum(step == "send" for step, _ in steps)
