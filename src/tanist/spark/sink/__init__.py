"""``df.write.format("rocketmq")`` and ``df.writeStream.format("rocketmq")``: rows into messages, once.

``options``, ``rows``, ``plans`` and ``lanes`` are pure: what a row becomes, which queue it goes to, and what
of a task's rows is still to be sent. ``brokers`` asks, ``task_writing`` sends, and Spark sees
``spark_writers``.
"""
