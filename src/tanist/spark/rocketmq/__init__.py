"""``spark.read.format("rocketmq")``: messages pulled from brokers, Tanist's or RocketMQ's.

``options`` and ``offsets`` say what is read, as text and as numbers; ``cluster`` asks brokers what there is;
``pulling`` reads in the Python workers, ``groups`` tells how far a group has read; ``source`` is for Spark.
"""
