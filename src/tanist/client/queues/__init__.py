"""The queues of a consumer: which are its own, and what it holds of them.

Pure: ``allocation`` (who takes which), ``assignment`` (what changes), ``cached_queue`` (what is fetched and
not done), ``start_offset``. ``rebalancing`` decides when, ``owned_queues`` takes and gives up,
``queue_locks`` holds locks for reading in order.
"""
