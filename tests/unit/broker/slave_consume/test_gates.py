"""What a broker that may not be read or written refuses."""

from typing import cast

import pytest

from tanist.broker.slave_consume.gates import READS, WRITES, obeying
from tanist.errors import ResponseError
from tanist.model.topics import READ, WRITE
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.response_errors import NotMaster, NotReadable
from tanist.remoting import Connection
from tests.support.read_rights import MASTER_IS_READ, OTHER, OTHER_IS_READ, OWN, GivenRight

NOBODY = cast("Connection", None)


def _serve(code: int, right: GivenRight) -> None:
    def answer(command: Command, _connection: Connection) -> Command:
        return command.reply()

    obeying({code: answer}, right)[code](Command.request(code), NOBODY)


@pytest.mark.behaviour("S3-16")
@pytest.mark.parametrize("code", sorted(READS), ids=lambda code: RequestCode(code).name)
def test_whatever_a_consumer_asks_is_refused_where_another_one_is_read(code: int) -> None:
    with pytest.raises(NotReadable, match=f"^{OWN} is not readable: another one is read") as refusal:
        _serve(code, GivenRight(OTHER_IS_READ))
    assert refusal.value.code == ResponseCode.NO_PERMISSION
    assert (refusal.value.reader_address, refusal.value.term) == (OTHER, 2)


@pytest.mark.parametrize("code", sorted(WRITES), ids=lambda code: RequestCode(code).name)
def test_whatever_brings_a_message_is_refused_where_nothing_may_be_written(code: int) -> None:
    with pytest.raises(NotMaster, match=f"^{OWN} is not writable"):
        _serve(code, GivenRight(OTHER_IS_READ._replace(permission=READ)))


@pytest.mark.behaviour("S3-11")
@pytest.mark.parametrize(
    ("permission", "served"),
    [(0, set[int]()), (READ, {*READS}), (WRITE, {*WRITES}), (READ | WRITE, READS | WRITES)],
)
def test_each_request_is_served_by_whoever_has_what_it_needs(permission: int, served: set[int]) -> None:
    right = GivenRight(MASTER_IS_READ._replace(permission=permission))
    found: set[int] = set()
    for code in READS | WRITES:
        try:
            _serve(code, right)
        except ResponseError:
            continue
        found.add(code)
    assert found == served


def test_what_is_permitted_is_asked_with_every_request() -> None:
    right = GivenRight(MASTER_IS_READ)
    _serve(RequestCode.UPDATE_CONSUMER_OFFSET, right)
    right.found = OTHER_IS_READ
    with pytest.raises(NotReadable):
        _serve(RequestCode.UPDATE_CONSUMER_OFFSET, right)


@pytest.mark.parametrize(
    "code", [RequestCode.UNREGISTER_CLIENT, RequestCode.GET_CONSUME_STATS, RequestCode.GET_READ_STANDING]
)
def test_goodbyes_and_questions_of_operators_are_always_served(code: int) -> None:
    _serve(code, GivenRight(OTHER_IS_READ))
