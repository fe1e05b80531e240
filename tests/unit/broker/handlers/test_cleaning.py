from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.broker.handlers.cleaning import routes
from tanist.broker.state import BrokerState
from tanist.model.topics import SCHEDULE_TOPIC, TopicConfig
from tanist.protocol.codes import RequestCode, ResponseCode
from tests.support.broker_tables import Asker, open_state
from tests.support.messages import bodies, make_message, numbered


@pytest.fixture
def state(tmp_path: Path) -> Iterator[BrokerState]:
    state = open_state(tmp_path)
    state.topics.put(TopicConfig(topic_name="Used"))
    with state.store:
        yield state


@pytest.fixture
def broker(state: BrokerState) -> Asker:
    return Asker(routes(state))


def _append(state: BrokerState, *topics: str, body_bytes: int = 0) -> None:
    for topic in topics:
        state.store.append(make_message(0, topic=topic, body_bytes=body_bytes))
    state.store.dispatch()


def _ask(broker: Asker, code: RequestCode) -> None:
    assert broker.ask(code).code == ResponseCode.SUCCESS


def test_messages_of_topics_that_are_gone_are_deleted_and_no_others(
    state: BrokerState, broker: Asker
) -> None:
    _append(state, "Used", "Gone", SCHEDULE_TOPIC)
    _ask(broker, RequestCode.CLEAN_UNUSED_TOPIC)
    found = {topic: bodies(state.store, topic) for topic in ("Used", "Gone", SCHEDULE_TOPIC)}
    assert found == {"Used": numbered(0), "Gone": [], SCHEDULE_TOPIC: numbered(0)}


def test_queues_go_when_topic_and_messages_are_gone(state: BrokerState, broker: Asker) -> None:
    _append(state, "Used", "Gone", SCHEDULE_TOPIC)
    _ask(broker, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)
    assert state.store.queues.find("Gone", 0) is not None
    _append(state, *["Filling"] * 8, body_bytes=1000)
    state.store.flush()
    gone = [state.store.log.take_first_segment()]
    state.store.log.segments.discard(gone)
    state.store.finish_clean(gone)
    _ask(broker, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)
    assert state.store.queues.topics() == {"Used", "Filling", SCHEDULE_TOPIC}


def test_old_files_are_left_to_the_upkeep(
    state: BrokerState, broker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[None] = []
    monkeypatch.setattr(state.upkeep, "clean_soon", lambda: asked.append(None))
    _ask(broker, RequestCode.DELETE_EXPIRED_COMMITLOG)
    assert asked == [None]
