"""A group with fixed roles on a virtual clock: registry, processes, cables and consumers, all without I/O.

The standings are the real ones; everything around them is played. ``world`` puts it together and looks after
every event whether two are read at once.
"""
