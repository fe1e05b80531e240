"""Replication: the links between a master and its slaves, and the sends that wait for them.

Pure: ``admission`` (who is let in, and from where), ``master_link`` and ``slave_link`` (the two ends of a
link), ``replicas`` (whose acks count), ``waiters`` (sends in the order in which they are released),
``link_times`` (heartbeats, silence), ``throttle``. Shells: ``acceptor`` (a master's port), ``follower`` (a
slave).

With RocketMQ: ``peers`` (from where its dialects may be spoken), ``classic_master`` and ``classic_slave``
(the same two ends with fixed roles), ``autoswitch_master`` and ``autoswitch_slave`` (under a controller),
``classic_frames`` (where frames end), ``record_walk`` (whether bytes can follow in a log).
"""
