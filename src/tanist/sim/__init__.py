"""Whole groups on a virtual clock: the machines are the real ones, all around them is played.

``group`` is one under a controller, through many reigns: what is acknowledged, kept and shown. ``reading``
is one with fixed roles, its registry and its consumers: who is read. ``reset`` is one whose consumers are
moved: where they go on. ``reign`` is one reign of a master, with answers that are late or lost.
``histories`` runs many of them and says which broke a rule; ``shrinking`` finds out what a broken one needs.
No I/O and no clock: a history of minutes takes milliseconds, and the same seed tells the same story.
"""

from tanist.sim.histories import WORLDS, Story, tell, tell_many, tell_shortest

__all__ = ["WORLDS", "Story", "tell", "tell_many", "tell_shortest"]
