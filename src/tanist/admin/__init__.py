"""What operators do: one async function an action, over ``asking``, which reaches brokers and name servers.

A module a subject (``topics``, ``groups``, ``offsets``, ``messages``, ``brokers`` and so on);
``replication`` (how masters and slaves stand to each other, and the way out for a slave that does not fit),
``slave_consume`` and ``why`` (who is read, and why nobody is), ``roles`` (who is master and who is slave),
``drills`` (a failover rehearsed), ``resets`` (moving a group's offsets), ``message_search`` and
``dead_letters``, ``topic_changes`` and ``broker_changes``.
"""
