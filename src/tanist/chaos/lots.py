"""What chance decides of a run: when something breaks, and whose it is. Pure; a seed decides it for good."""

import random
from dataclasses import dataclass
from enum import StrEnum


class Victim(StrEnum):
    """Whose disk, clock, memory or cable it is, where a fault may strike either."""

    MASTER = "master"
    SLAVE = "slave"


@dataclass(frozen=True, slots=True)
class Lot:
    """What was drawn for one run."""

    moment: float
    """When the fault comes, as a part of the time that a plan has for it: from a half to one and a half."""
    victim: Victim


def draw(seed: int) -> Lot:
    """The lot of a seed."""
    chance = random.Random(seed)  # noqa: S311
    return Lot(moment=0.5 + chance.random(), victim=chance.choice(list(Victim)))
