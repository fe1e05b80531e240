"""Replication: the links between a master and its slaves, and the sends that wait for them.

Pure: ``admission`` (who is let in, and from where), ``master_link`` and ``slave_link`` (the two ends of a
link), ``replicas`` (whose acks count), ``waiters`` (sends in the order in which they are released),
``throttle``. Shells: ``acceptor`` (a master's port), ``follower`` (a slave).
"""
