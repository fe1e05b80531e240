"""Positions. Two kinds that must never be mixed, so they are two types."""

from typing import NewType

LogOffset = NewType("LogOffset", int)
"""A byte position in the commit log."""

QueueOffset = NewType("QueueOffset", int)
"""A position in one queue: the number of the message in it."""
