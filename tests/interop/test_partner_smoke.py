"""The partner itself works: what its producer sends, its consumer reads back."""

from pathlib import Path

import pytest

from tests.support.rocketmq import RocketMQ, body_of

pytestmark = pytest.mark.partner("java", "maven")


def test_a_stock_client_reads_back_what_it_sent(rocketmq: RocketMQ) -> None:
    rocketmq.start_broker()

    sent = rocketmq.produce("Smoke", count=200, queues=(0, 1, 2, 3), tags=("A", "B"), key_prefix="key-")
    received = rocketmq.consume_all("Smoke")

    assert [message.status for message in sent] == ["SEND_OK"] * 200
    places = [(message.queue_id, message.queue_offset) for message in received]
    assert places == [(queue_id, offset) for queue_id in range(4) for offset in range(50)]
    by_place = dict(zip(places, received, strict=True))
    for number, message in enumerate(sent):
        read = by_place[message.queue_id, message.queue_offset]
        assert read.body == body_of(number, 100)
        assert read.offset_message_id == message.offset_message_id
        assert (read.message_id, read.keys, read.tags) == (
            message.message_id,
            f"key-{number}",
            "AB"[number % 2],
        )


@pytest.mark.takes(20)
def test_a_clean_stop_and_a_kill_leave_what_they_should(rocketmq: RocketMQ, tmp_path: Path) -> None:
    store_dir = tmp_path / "store"
    broker = rocketmq.start_broker(store_dir=store_dir)
    rocketmq.produce("Kept", count=10)
    assert "Kept" in rocketmq.mqadmin("topicList")

    broker.stop()
    assert not (store_dir / "abort").exists()

    broker = rocketmq.start_broker(store_dir=store_dir)
    assert [message.body for message in rocketmq.consume_all("Kept")] == [
        body_of(number, 100) for number in range(10)
    ]

    broker.kill()
    assert (store_dir / "abort").exists()
