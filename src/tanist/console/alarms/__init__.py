"""Alarms: ``rules`` read a snapshot, ``board`` decides what is one, ``webhook`` tells it."""
