from typing import cast

import pytest

from tanist.broker.slave_role import REFUSED, without_writes
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.response_errors import NotMaster
from tanist.remoting import Connection

NOBODY = cast("Connection", None)


def answer(command: Command, _connection: Connection) -> Command:
    return command.reply()


def no() -> bool:
    return False


@pytest.mark.parametrize("code", REFUSED, ids=lambda code: RequestCode(code).name)
def test_what_only_a_master_does_is_refused_with_the_code_of_rocketmq(code: int) -> None:
    routes = without_writes({code: answer}, lambda: None, no)
    with pytest.raises(NotMaster, match="ask the master") as refusal:
        routes[code](Command.request(code), NOBODY)
    assert refusal.value.code == REFUSED[code]
    assert refusal.value.master_address is None


def test_a_refusal_says_where_the_master_is_now() -> None:
    place: list[str] = ["10.0.0.1:10911"]
    send = without_writes({RequestCode.SEND_MESSAGE_V2: answer}, lambda: place[0], no)[
        RequestCode.SEND_MESSAGE_V2
    ]
    for address in ("10.0.0.1:10911", "10.0.0.2:10911"):
        place[0] = address
        with pytest.raises(NotMaster, match=f"its master at {address}") as refusal:
            send(Command.request(RequestCode.SEND_MESSAGE_V2), NOBODY)
        assert refusal.value.master_address == address


def test_a_slave_that_is_read_says_that_its_log_is_never_written_and_names_no_master() -> None:
    code = RequestCode.CONSUMER_SEND_MSG_BACK
    routes = without_writes({code: answer}, lambda: "10.0.0.1:10911", lambda: True)
    with pytest.raises(NotMaster, match="its log is never written") as refusal:
        routes[code](Command.request(code), NOBODY)
    assert refusal.value.code == REFUSED[code]
    assert refusal.value.master_address is None


@pytest.mark.parametrize(
    "code",
    [
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.APPLY_RESET,
        RequestCode.DECIDE_RESET,
        RequestCode.RESET_RECEIPT,
        RequestCode.CLONE_GROUP_OFFSET,
    ],
)
def test_offsets_are_changed_at_a_slave_as_long_as_it_is_read(code: RequestCode) -> None:
    is_read = True
    serve = without_writes({code: answer}, lambda: None, lambda: is_read)[code]
    answered = serve(Command.request(code), NOBODY)
    assert isinstance(answered, Command)
    assert answered.code == ResponseCode.SUCCESS
    is_read = False
    with pytest.raises(NotMaster, match="ask the master"):
        serve(Command.request(code), NOBODY)


def test_the_codes_are_those_that_clients_know_from_slaves() -> None:
    assert REFUSED[RequestCode.SEND_MESSAGE_V2] is ResponseCode.SERVICE_NOT_AVAILABLE
    assert REFUSED[RequestCode.CONSUMER_SEND_MSG_BACK] is ResponseCode.SYSTEM_ERROR
    assert REFUSED[RequestCode.END_TRANSACTION] is ResponseCode.SLAVE_NOT_AVAILABLE


def test_everything_else_is_served_and_nothing_new() -> None:
    routes = without_writes({RequestCode.PULL_MESSAGE: answer}, lambda: None, no)
    assert routes == {RequestCode.PULL_MESSAGE: answer}
