import logging
from pathlib import Path

import pytest

from tanist.broker.operating import lag_lines
from tanist.broker.operating.lag_lines import LagLines
from tests.support.broker_tables import open_state
from tests.support.messages import make_message
from tests.support.played_slaves import make_replica


@pytest.mark.behaviour("S5-1", "S5-22")
def test_the_line_of_each_slave_shows_its_terms(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, lag_lines.__name__)
    state = open_state(tmp_path)
    with state.store:
        state.store.append(make_message())
        log_end = state.store.log.log_end
        state.replication.replicas.join(make_replica(1, acked_to=7))
        state.replication.replicas.join(make_replica(2, acked_to=log_end))
        LagLines(state).tell()
    assert [record.getMessage() for record in caplog.records] == [
        f"slave fall behind master: {log_end} - 7 = {log_end - 7} bytes slave=10.0.0.1:40112 id=1",
        f"slave fall behind master: {log_end} - {log_end} = 0 bytes slave=10.0.0.2:40112 id=2",
    ]


def test_that_no_slave_is_connected_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, lag_lines.__name__)
    state = open_state(tmp_path)
    with state.store:
        lines, replica = LagLines(state), make_replica(1)
        lines.tell()
        lines.tell()
        state.replication.replicas.join(replica)
        lines.tell()
        state.replication.replicas.leave(replica)
        lines.tell()
    assert ["unknown" in record.getMessage() for record in caplog.records] == [True, False, True]
