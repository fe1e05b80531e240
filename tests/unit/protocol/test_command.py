"""Commands: one frame as the rest of the code sees it."""

import pytest

from tanist.errors import RemoteProtocolError
from tanist.protocol.codes import HeaderEncoding, Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import ConsumerGroupRequest, TopicQueueRequest, TopicRequest


def test_a_request_of_ours_speaks_python_and_json() -> None:
    command = Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, TopicRequest(topic="T"))
    assert (command.code, command.flag, command.language) == (105, 0, Language.PYTHON)
    assert command.encoding is HeaderEncoding.JSON
    assert command.ext == {"topic": "T"}


def test_a_one_way_request_says_so() -> None:
    command = Command.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, is_one_way=True)
    assert command.is_one_way
    assert not command.is_response


@pytest.mark.parametrize("encoding", HeaderEncoding)
def test_an_answer_mirrors_the_opaque_and_the_encoding(encoding: HeaderEncoding) -> None:
    request = Command(105, 42, 0, Language.GO, 401, encoding=encoding)
    answer = request.reply(ResponseCode.TOPIC_NOT_EXIST, remark="no route")
    assert (answer.code, answer.opaque, answer.encoding, answer.remark) == (17, 42, encoding, "no route")
    assert answer.is_response
    assert answer.language is Language.PYTHON


def test_an_answer_to_a_one_way_request_is_not_one_way() -> None:
    assert not Command.request(15, is_one_way=True).reply().is_one_way


def test_a_typed_header_is_read_from_json_text() -> None:
    command = Command(31, header_json=b'{"extFields":{"topic":"T","queueId":"3"}}')
    assert command.header(TopicQueueRequest) == TopicQueueRequest(topic="T", queue_id=3)


def test_the_same_fields_can_be_read_one_by_one_and_as_another_type() -> None:
    command = Command(31, header_json=b'{"extFields":{"topic":"T","queueId":"3","AccessKey":"k"}}')
    assert command.header(TopicQueueRequest).queue_id == 3
    assert command.header(TopicRequest) == TopicRequest(topic="T")
    assert command.ext == {"topic": "T", "queueId": "3", "AccessKey": "k"}
    assert command.header(TopicQueueRequest).queue_id == 3


def test_a_field_added_to_ext_is_seen_by_typed_headers() -> None:
    command = Command.request(38, ext={})
    command.ext["consumerGroup"] = "G"
    assert command.header(ConsumerGroupRequest).consumer_group == "G"


def test_a_missing_field_is_named() -> None:
    with pytest.raises(RemoteProtocolError, match="TopicQueueRequest: mandatory field queueId is missing"):
        Command.request(31, ext={"topic": "T"}).header(TopicQueueRequest)


def test_commands_are_equal_whatever_form_their_fields_have() -> None:
    typed = Command.request(105, TopicRequest(topic="T"), body=b"hi")
    text = Command(105, header_json=b'{"extFields":{"topic":"T"}}', body=memoryview(b"hi"))
    assert typed == text == Command.request(105, ext={"topic": "T"}, body=b"hi")
    assert typed != Command.request(105, ext={"topic": "U"}, body=b"hi")
    assert typed != "a command"


def test_neither_fields_nor_body_are_shown() -> None:
    command = Command.request(310, ext={"AccessKey": "secret"}, body=b"secret", opaque=7)
    assert repr(command) == "<request code=310 opaque=7 body=6 bytes>"
    assert repr(command.reply()) == "<answer code=0 opaque=7 body=0 bytes>"
