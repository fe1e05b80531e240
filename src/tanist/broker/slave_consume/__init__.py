"""Slave consumption: with fixed roles a slave is read while its master is gone, and hands back the offsets.

``permitted`` says what a broker may do, ``master_standing`` and ``slave_standing`` decide each side's part,
and ``notes`` is what they tell each other on the replication link. ``right`` is what handlers ask,
``gate`` sends consumers away, and ``relays`` pass on what those ask who do not understand where to go.
"""
