"""What operators do: one async function an action, over ``asking``, which reaches brokers and name servers.

``replication`` (how masters and slaves stand to each other, and the way out for a slave that does not fit),
``slave_consume`` and ``why`` (who is read, and why nobody is), ``roles`` (who is master and who is slave),
``resets`` (moving a group's offsets).
"""
