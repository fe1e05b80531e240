import asyncio
from pathlib import Path

import pytest

from tanist.broker.handlers import slave_consume
from tanist.broker.handlers.slave_consume import routes
from tanist.errors import MQError, ResponseError
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.slave_consume import SlaveConsumeLedger, SlaveConsumeStatus
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.slave_consume import EndSlaveConsumeRequest, GetSlaveConsumeLedgerRequest
from tests.support.broker_tables import Asker, open_state
from tests.support.fake_connection import FakeConnection
from tests.support.slave_consume_views import (
    GROUP,
    PlayedView,
    following_slave,
    serving_master,
    switch_entry,
    waiting_master,
)

CODES = (
    RequestCode.GET_SLAVE_CONSUME_STATUS,
    RequestCode.GET_SLAVE_CONSUME_LEDGER,
    RequestCode.END_SLAVE_CONSUME,
)
END = EndSlaveConsumeRequest(broker_name=GROUP, term=3, reason="its disk is gone", is_forced=True)


def ask_late(root: Path, view: PlayedView, code: int, header: Header) -> Command:
    """The answer to a question that takes a while."""
    state, connection = open_state(root), FakeConnection()
    state.slave_consume = view
    with state.store:
        request = Command.request(code, header, opaque=7)
        assert routes(state)[code](request, connection) is None
        (work,) = view.work

        async def done() -> None:
            await work()

        asyncio.run(done())
    (answer,) = connection.take_sent()
    assert answer.opaque == 7
    return answer


@pytest.mark.parametrize("code", CODES)
def test_a_broker_without_a_coordinator_says_what_to_set(code: int, tmp_path: Path) -> None:
    state = open_state(tmp_path)
    with state.store:
        answer = Asker(routes(state)).ask(code, END)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert "set coordinator on all brokers of broker-a" in (answer.remark or "")


@pytest.mark.parametrize("status", [serving_master(), waiting_master(given_up="alone"), following_slave()])
def test_an_operator_is_told_how_the_broker_stands(status: SlaveConsumeStatus, tmp_path: Path) -> None:
    state = open_state(tmp_path)
    state.slave_consume = PlayedView(status)
    with state.store:
        answer = Asker(routes(state)).ask(RequestCode.GET_SLAVE_CONSUME_STATUS)
    assert decode_java_json(answer.body, SlaveConsumeStatus) == status


def test_the_last_entries_of_the_ledger_are_told(tmp_path: Path) -> None:
    entries = [switch_entry(term=term) for term in (1, 2, 3)]
    answer = ask_late(
        tmp_path,
        PlayedView(serving_master(), *entries),
        RequestCode.GET_SLAVE_CONSUME_LEDGER,
        GetSlaveConsumeLedgerRequest(count=2),
    )
    assert decode_java_json(answer.body, SlaveConsumeLedger).entries == entries[1:]


def test_of_a_ledger_that_does_not_fit_an_answer_the_newest_entries_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slave_consume, "MAX_LEDGER_BYTES", 1_000)
    entries = [switch_entry(term=term) for term in range(1, 9)]
    header = GetSlaveConsumeLedgerRequest(count=8)
    view = PlayedView(serving_master(), *entries)
    answer = ask_late(tmp_path, view, RequestCode.GET_SLAVE_CONSUME_LEDGER, header)
    found = decode_java_json(answer.body, SlaveConsumeLedger).entries
    assert found == entries[-len(found) :]
    assert 0 < len(found) < 8


def test_an_entry_that_does_not_fit_alone_is_told_without_its_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slave_consume, "MAX_LEDGER_BYTES", 1_000)
    large = switch_entry(offsets={f"Topic{number}@orders": {0: 1} for number in range(100)})
    answer = ask_late(
        tmp_path,
        PlayedView(serving_master(), large),
        RequestCode.GET_SLAVE_CONSUME_LEDGER,
        GetSlaveConsumeLedgerRequest(),
    )
    assert decode_java_json(answer.body, SlaveConsumeLedger).entries == [switch_entry(offsets={})]


@pytest.mark.behaviour("S3-65")
def test_one_command_has_a_master_be_read_again(tmp_path: Path) -> None:
    view = PlayedView(waiting_master())
    answer = ask_late(tmp_path, view, RequestCode.END_SLAVE_CONSUME, END)
    assert (answer.code, bytes(answer.body)) == (ResponseCode.SUCCESS, b"slave consumption 3 is ended")
    assert view.ended == [("its disk is gone", True)]


class _Broken(MQError):
    pass


@pytest.mark.parametrize(
    "error", [ResponseError(ResponseCode.SYSTEM_ERROR, "it is alive"), _Broken("it is alive")]
)
def test_a_refusal_reaches_the_one_who_asked(error: ResponseError, tmp_path: Path) -> None:
    view = PlayedView(waiting_master(), refusal=error)
    answer = ask_late(tmp_path, view, RequestCode.END_SLAVE_CONSUME, END)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "it is alive")


@pytest.mark.parametrize(("group", "term"), [("broker-b", 3), (GROUP, 2)])
def test_what_is_not_meant_is_not_ended(group: str, term: int, tmp_path: Path) -> None:
    state, view = open_state(tmp_path), PlayedView(waiting_master())
    state.slave_consume = view
    header = EndSlaveConsumeRequest(broker_name=group, term=term)
    with state.store:
        answer = Asker(routes(state)).ask(RequestCode.END_SLAVE_CONSUME, header)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "this is broker-a in term 3" in (answer.remark or "")
    assert view.work == []


def test_only_so_many_questions_wait(tmp_path: Path) -> None:
    state, view = open_state(tmp_path), PlayedView(waiting_master())
    state.slave_consume = view
    served, connection = routes(state), FakeConnection()
    request = Command.request(RequestCode.GET_SLAVE_CONSUME_LEDGER, GetSlaveConsumeLedgerRequest())
    with state.store:
        for _ in range(slave_consume.MAX_WAITING):
            served[request.code](request, connection)
        with pytest.raises(ResponseError, match="too many"):
            served[request.code](request, connection)
