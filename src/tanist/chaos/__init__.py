"""Breaks a cluster of real processes on purpose while clients write and read, and has the checker judge it.

``modes`` plans the processes, ``faults`` says what can be broken and what goes on meanwhile, ``lots`` when
and whose it is, ``outage`` measures how long nobody could work; all pure. ``site`` runs the processes and
strikes them, ``hosts``, ``disks`` and their like are machines of their own where that is allowed,
``proxy`` is a network that misbehaves, and ``run`` is one run from start to verdict.
"""

from tanist.chaos.faults import Fault, faults_of
from tanist.chaos.means import NotPossible
from tanist.chaos.modes import Mode
from tanist.chaos.run import Result, RunPlan, run
from tanist.chaos.zookeeper import LeaderHand

__all__ = ["Fault", "LeaderHand", "Mode", "NotPossible", "Result", "RunPlan", "faults_of", "run"]
