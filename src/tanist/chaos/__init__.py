"""Breaks a cluster of real processes on purpose while clients write and read, and has the checker judge it.

``modes`` plans the processes, ``faults`` says what can be broken and what goes on meanwhile, ``outage``
measures how long it did not; all pure. ``site`` runs the processes and strikes them, ``hosts`` gives them
machines of their own where that is allowed, ``proxy`` is a network that misbehaves, and ``run`` is one run
from start to verdict.
"""

from tanist.chaos.faults import Fault, faults_of
from tanist.chaos.modes import Mode
from tanist.chaos.run import Result, RunPlan, run

__all__ = ["Fault", "Mode", "Result", "RunPlan", "faults_of", "run"]
