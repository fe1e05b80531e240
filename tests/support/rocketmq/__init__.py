"""Apache RocketMQ as a test partner: its jars, its name server and brokers, and a stock Java client.

with RocketMQ(tmp_path) as rocketmq:
    broker = rocketmq.start_broker(properties={"flushDiskType": "SYNC_FLUSH"})
    sent = rocketmq.produce("Orders", count=200, queues=(0, 1, 2, 3))
    broker.stop()
"""

from tests.support.rocketmq.client import BackgroundProducer, KeyQuestion, Received, Sent, TimeQuestion
from tests.support.rocketmq.cluster import CONSUMER_GROUP, Broker, RocketMQ, body_of, free_broker_port
from tests.support.rocketmq.jars import Installation, install

__all__ = [
    "CONSUMER_GROUP",
    "BackgroundProducer",
    "Broker",
    "Installation",
    "KeyQuestion",
    "Received",
    "RocketMQ",
    "Sent",
    "TimeQuestion",
    "body_of",
    "free_broker_port",
    "install",
]
