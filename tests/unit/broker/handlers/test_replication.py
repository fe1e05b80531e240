from pathlib import Path
from typing import cast

import pytest

from tanist.broker.handlers.replication import routes
from tanist.broker.operating.ha_status import ha_status
from tanist.ha.follower import Follower
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.bodies.slave_consume import SlaveConsumeStatus
from tanist.protocol.codes import RequestCode
from tanist.protocol.headers.sync import RebuildSlaveRequest
from tests.support.broker_tables import Asker, open_state
from tests.support.messages import make_message
from tests.support.played_slaves import make_replica
from tests.support.slave_consume_views import PlayedView, following_slave, reading_slave


def test_an_operator_is_told_how_the_broker_stands_to_its_slaves(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    with state.store:
        state.store.append(make_message())
        state.replication.replicas.join(make_replica(1, acked_to=0))
        answer = Asker(routes(state)).ask(RequestCode.GET_BROKER_HA_STATUS)
        assert decode_java_json(answer.body, HARuntimeInfo) == ha_status(state)
        assert b'"diff":%d' % state.store.log.log_end in answer.body


@pytest.mark.parametrize(
    ("status", "reason"),
    [(reading_slave(), "wait for the hand-back"), (following_slave(record=None), "has not been read yet")],
)
def test_a_slave_that_is_read_is_not_rebuilt(status: SlaveConsumeStatus, reason: str, tmp_path: Path) -> None:
    state = open_state(tmp_path)
    state.slave_consume = PlayedView(status)
    rebuilt: list[None] = []
    state.rebuild = lambda: rebuilt.append(None)
    state.replication.follower = cast("Follower", object())
    settings = state.settings
    with state.store:
        request = RebuildSlaveRequest(broker_name=settings.broker_name, broker_id=settings.broker_id)
        answer = Asker(routes(state)).ask(RequestCode.REBUILD_SLAVE, request)
    assert reason in (answer.remark or "")
    assert rebuilt == []
