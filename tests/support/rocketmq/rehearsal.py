"""Each Java program of the tests run once, to leave an archive of the classes that it loads.

A later run takes its classes from there, ready for use, which halves what its start costs. A program that
was not rehearsed runs as well, only slower.
"""

import tempfile
from pathlib import Path

from tests.support.rocketmq.cluster import RocketMQ, mqadmin_each
from tests.support.rocketmq.controlled import start_controller
from tests.support.rocketmq.jars import CLIENT_LINES, rehearsal
from tests.support.rocketmq.stock_client import Outgoing, StockClients

_TOPIC = "Rehearsal"


def rehearse() -> None:
    """Make the archives that are not there yet."""
    with tempfile.TemporaryDirectory() as folder, rehearsal():
        home = Path(folder)
        with RocketMQ(home / "rocketmq") as rocketmq:
            broker = rocketmq.start_broker()
            rocketmq.produce(_TOPIC, count=1)
            rocketmq.consume_all(_TOPIC)
            rocketmq.mqadmin("clusterList")
            for line in CLIENT_LINES:
                mqadmin_each(rocketmq.name_server, ["clusterList"], home=home / f"operator-{line}", line=line)
                _send_and_receive(rocketmq.name_server, home / f"clients-{line}", line)
            start_controller(rocketmq).stop()
            broker.stop()
            rocketmq.stop_name_server()


def _send_and_receive(name_server: str, home: Path, line: str) -> None:
    with StockClients(line, home) as clients:
        with (
            clients.producer(name_server) as producer,
            clients.push_consumer(name_server, f"rehearsal-{line[0]}", _TOPIC) as consumer,
        ):
            producer.send(_TOPIC, [Outgoing(b"a message")])
            consumer.received(1)
        clients.process.finish()
