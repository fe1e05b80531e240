"""Offsets that clients are told to go to."""

import json

from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies import ObjectKeyed, decode_java_json, encode_body
from tanist.protocol.bodies.reset import OffsetRows, OffsetTable, rows_of


def test_clients_in_cpp_get_a_list() -> None:
    queues = [MessageQueue(topic="T", broker_name="b", queue_id=number) for number in (1, 0)]
    table = OffsetTable(offset_table=ObjectKeyed({queue: QueueOffset(5) for queue in queues}))
    body = encode_body(rows_of(table))
    assert json.loads(body) == {
        "offsetTable": [
            {"brokerName": "b", "offset": 5, "queueId": 0, "topic": "T"},
            {"brokerName": "b", "offset": 5, "queueId": 1, "topic": "T"},
        ]
    }
    assert decode_java_json(body, OffsetRows) == rows_of(table)
