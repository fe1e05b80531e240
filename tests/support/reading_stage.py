"""Scenarios played in the simulated world."""

from collections.abc import Callable, Iterable

from tanist.model.reading import FULL, NONE
from tanist.model.topics import READ, WRITE
from tanist.sim.reading.world import SimWorld

_PERMISSIONS = {"FULL": FULL, "WRITE": WRITE, "READ": READ, "NONE": NONE}


class SimStage:
    """A ``tests.support.scenarios.Stage``. All takes the same time in every run."""

    def __init__(self, slaves: Iterable[str], checks: int) -> None:
        self.world = SimWorld(slaves, checks=checks)
        self.start = self.world.start
        self.kill = self.world.kill
        self.freeze = self.world.freeze
        self.thaw = self.world.thaw
        self.mend = self.world.mend
        self.consume = self.world.consume
        self.end = self.world.end
        self.permission = self.world.permission

    @property
    def again_count(self) -> int:
        return self.world.again_count

    def cut(self, one: str, other: str) -> None:
        self.world.cut(one, other)

    def delay(self, one: str, other: str, delay_s: float) -> None:
        self.world.cables.delays_s[one, other] = delay_s

    def assign(self, name: str, permission: str) -> None:
        self.world.assign(name, _PERMISSIONS[permission])

    def restore(self) -> None:
        self.world.master.restore()

    def reader(self) -> str | None:
        return self.world.registry.record.reader

    def second(self) -> str | None:
        return self.world.registry.record.second

    def wait(self, duration_s: float, until: Callable[[], bool]) -> bool:
        return self.world.clockwork.run_for(duration_s, until)

    def note(self, line: str) -> None:
        self.world.transcript.append(f"{'':7}  > {line}")
