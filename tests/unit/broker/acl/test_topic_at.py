"""Whose a message is that lies at a place of the log."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tanist.broker.acl import topic_at
from tanist.errors import ResponseError
from tanist.model.topics import HALF_TOPIC, SCHEDULE_TOPIC
from tanist.store import MessageStore
from tests.support.messages import TOPIC, make_message, open_store

# Where a record says at which log offset it lies.
OFFSET_FIELD = slice(28, 36)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    with open_store(tmp_path) as store:
        yield store


def test_a_message_is_its_topics_as_soon_as_it_is_written(store: MessageStore) -> None:
    log_offset = store.append(make_message()).log_offset
    assert topic_at(store, log_offset) == TOPIC
    assert topic_at(store, log_offset + 1) is None
    assert topic_at(store, store.log.log_end) is None


@pytest.mark.parametrize("waits_in", [SCHEDULE_TOPIC, HALF_TOPIC])
def test_what_waits_is_of_the_topic_that_it_waits_for(store: MessageStore, waits_in: str) -> None:
    waiting = store.append(make_message(topic=waits_in, REAL_TOPIC="Orders"))
    assert topic_at(store, waiting.log_offset) == "Orders"


def test_a_sender_can_not_say_that_a_message_is_of_another_topic(store: MessageStore) -> None:
    sent = store.append(make_message(REAL_TOPIC="Orders"))
    assert topic_at(store, sent.log_offset) == TOPIC


def test_a_body_that_looks_like_a_message_is_none(store: MessageStore) -> None:
    first = store.append(make_message())
    record = bytearray(store.log.read(first.log_offset, store.log.log_end - first.log_offset))
    to_body = record.index(b"message 0")
    within = store.log.log_end + to_body
    record[OFFSET_FIELD] = within.to_bytes(8, "big")
    store.append(msgspec.structs.replace(make_message(), body=bytes(record)))
    assert store.record_at(within) is not None
    with pytest.raises(ResponseError):
        topic_at(store, within)
