"""Whole groups on a virtual clock: the machines are the real ones, all around them is played.

``reading`` is a group with fixed roles, its registry and its consumers: who is read. ``reign`` is a master
under a controller, its slaves and its lease: what it acknowledges. ``histories`` runs many of them and says
which broke a rule. No I/O and no clock: a history of minutes takes milliseconds, and the same seed tells the
same story.
"""

from tanist.sim.histories import WORLDS, Story, tell, tell_many

__all__ = ["WORLDS", "Story", "tell", "tell_many"]
