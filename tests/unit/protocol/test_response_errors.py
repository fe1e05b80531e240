import pytest

from tanist.errors import ResponseError
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.response_errors import NoPermission, NotMaster, TopicNotFound, error_of

# What RocketMQ 5's producers send again elsewhere.
SENT_AGAIN = {1, 2, 14, 16, 17, 204, 205, 1500}


def answer(code: int, remark: str | None = None) -> Command:
    return Command.request(1).reply(code, remark=remark)


def test_a_code_has_its_class() -> None:
    error = error_of(answer(ResponseCode.TOPIC_NOT_EXIST, "no T here"))
    assert type(error) is TopicNotFound
    assert (error.code, error.remark) == (17, "no T here")


def test_a_code_that_nobody_knows_is_a_plain_error_with_it() -> None:
    error = error_of(answer(-77))
    assert type(error) is ResponseError
    assert (error.code, error.retriable, error.refresh_route) == (-77, False, False)
    assert "-77" in str(error)


@pytest.mark.parametrize("code", sorted(SENT_AGAIN))
def test_whatever_rocketmqs_producers_send_again_is_retriable(code: int) -> None:
    assert error_of(answer(code)).retriable


@pytest.mark.parametrize("code", [3, 13, 15, 22, 23, 26, 29, 206, 604])
def test_what_would_be_refused_again_is_not_retriable(code: int) -> None:
    assert not error_of(answer(code)).retriable


def test_a_missing_permission_makes_the_route_suspect() -> None:
    error = error_of(answer(ResponseCode.NO_PERMISSION))
    assert isinstance(error, NoPermission)
    assert error.refresh_route


@pytest.mark.parametrize("address", ["10.0.0.8:10911", None])
def test_a_refusal_of_a_slave_tells_where_its_master_is_if_it_knows(address: str | None) -> None:
    raised = NotMaster(ResponseCode.SERVICE_NOT_AVAILABLE, "a slave", master_address=address)
    error = error_of(Command.request(1).reply(raised.code, ext=raised.ext, remark=raised.remark))
    assert isinstance(error, NotMaster)
    assert (error.code, error.remark, error.master_address) == (raised.code, "a slave", address)
