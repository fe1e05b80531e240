from pathlib import Path

from tanist.broker.handlers.replication import routes
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.codes import RequestCode
from tests.support.broker_tables import Asker, open_state
from tests.support.messages import make_message


def test_a_master_tells_how_long_its_log_is_and_that_it_has_no_slaves(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    with state.store:
        state.store.append(make_message())
        answer = Asker(routes(state)).ask(RequestCode.GET_BROKER_HA_STATUS)
        assert decode_java_json(answer.body, HARuntimeInfo) == HARuntimeInfo(
            is_master=True, log_end=state.store.log.log_end
        )
        assert state.store.log.log_end > 0
