from pathlib import Path

from tanist.broker.handlers.replication import routes
from tanist.broker.operating.ha_status import ha_status
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.codes import RequestCode
from tests.support.broker_tables import Asker, open_state
from tests.support.messages import make_message
from tests.support.played_slaves import make_replica


def test_an_operator_is_told_how_the_broker_stands_to_its_slaves(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    with state.store:
        state.store.append(make_message())
        state.replication.replicas.join(make_replica(1, acked_to=0))
        answer = Asker(routes(state)).ask(RequestCode.GET_BROKER_HA_STATUS)
        assert decode_java_json(answer.body, HARuntimeInfo) == ha_status(state)
        assert b'"diff":%d' % state.store.log.log_end in answer.body
