"""Writes that are made once: what the log has of them, so that repeats are told from what is new.

``marks`` is pure: the table and its rules. ``kept_writes`` has it agree with the log, in which it is written
down as messages of a topic of its own, so that it goes wherever the log goes.
"""
