"""Routes."""

from itertools import pairwise

from tanist.model.route import BrokerData, MessageQueue, QueueData


def test_queues_sort_by_topic_then_broker_then_number() -> None:
    queues = [
        MessageQueue(topic="A", broker_name="b", queue_id=10),
        MessageQueue(topic="A", broker_name="c", queue_id=2),
        MessageQueue(topic="A", broker_name="c", queue_id=9),
        MessageQueue(topic="B", broker_name="a", queue_id=0),
    ]
    assert all(before < after for before, after in pairwise(queues))


def test_queues_with_the_same_three_fields_are_the_same_queue() -> None:
    assert len({MessageQueue(topic="A", broker_name="b", queue_id=1) for _ in range(2)}) == 1


def test_a_broker_has_a_master_only_under_id_0() -> None:
    addrs = {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}
    assert BrokerData(cluster="C", broker_name="b", broker_addrs=addrs).master_addr == "10.0.0.1:10911"
    assert BrokerData(cluster="C", broker_name="b", broker_addrs={1: "10.0.0.2:10911"}).master_addr is None


def test_a_queue_of_a_wiped_broker_is_readable_but_not_writable() -> None:
    queue = QueueData(broker_name="b", read_queue_count=4, write_queue_count=4, perm=4)
    assert queue.is_readable
    assert not queue.is_writable
