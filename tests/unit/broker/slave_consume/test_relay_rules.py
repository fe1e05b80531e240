"""For whom and where to a broker relays, and how much it keeps for that."""

import pytest

from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.slave_consume.relay_rules import (
    RELAYED,
    KeptHeartbeats,
    WaitingRequests,
    is_stock,
    owned,
    pull_again,
    relays_to,
)
from tanist.model.reading import NONE
from tanist.protocol.codes import HeaderEncoding, Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder, encode_command
from tanist.protocol.headers.pull import PullMessageRequest
from tests.support.fake_connection import decode_answer
from tests.support.read_rights import MASTER_IS_READ, NOBODY_KNOWN, OTHER, OTHER_IS_READ, OWN, SLAVE_IS_READ


def test_only_our_own_clients_know_that_another_broker_is_read() -> None:
    assert [language for language in Language if not is_stock(language)] == [Language.PYTHON]
    assert [language for language in Language if not is_stock(language.name)] == [Language.PYTHON]


@pytest.mark.parametrize(
    ("found", "target"),
    [
        (OTHER_IS_READ, OTHER),
        (SLAVE_IS_READ, None),
        (MASTER_IS_READ, None),
        (NOBODY_KNOWN, None),
        # An operator took READ from the master, and nobody else is read.
        (Permitted(NONE, "the master is read", OWN, 1), None),
    ],
)
def test_requests_go_to_another_broker_that_is_read_and_nowhere_else(
    found: Permitted, target: str | None
) -> None:
    assert {relays_to(code, found, OWN, is_slave=True) for code in RELAYED} == {target}


def test_what_is_to_be_consumed_again_goes_to_a_master_only() -> None:
    code = RequestCode.CONSUMER_SEND_MSG_BACK
    assert relays_to(code, OTHER_IS_READ, OWN, is_slave=True) == OTHER
    assert relays_to(code, OTHER_IS_READ, OWN, is_slave=False) is None


@pytest.mark.parametrize("encoding", HeaderEncoding)
def test_who_is_to_pull_again_does_so_where_it_stood(encoding: HeaderEncoding) -> None:
    request = Command.request(RequestCode.PULL_MESSAGE, opaque=9, encoding=encoding)
    (answer,) = decode_answer(pull_again(request, 42))
    assert (answer.code, answer.opaque) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 9)
    assert answer.ext["nextBeginOffset"] == "42"
    assert answer.ext["suggestWhichBrokerId"] == "0"


def test_requests_wait_in_order_up_to_a_count() -> None:
    waiting: WaitingRequests[str] = WaitingRequests(max_count=2)
    assert [waiting.add(name, 0) for name in "abc"] == [True, True, False]
    assert waiting.drain() == ["a", "b"]
    assert waiting.drain() == []
    assert waiting.add("c", 0)


def test_requests_wait_up_to_a_size() -> None:
    waiting: WaitingRequests[str] = WaitingRequests(max_bytes=1_000)
    assert not waiting.add("large", 1_001)
    assert [waiting.add(name, 200) for name in "abc"] == [True, True, False]
    waiting.drain()
    assert waiting.add("c", 200)


def _heartbeat(size_bytes: int) -> Command:
    return Command.request(RequestCode.HEART_BEAT, body=b"x" * size_bytes)


def test_the_last_heartbeat_of_each_client_is_kept_within_bounds() -> None:
    kept: KeptHeartbeats[str] = KeptHeartbeats(max_each_bytes=10, max_bytes=15)
    kept.keep("a", _heartbeat(10))
    kept.keep("b", _heartbeat(6))  # No room.
    kept.keep("c", _heartbeat(11))  # Too large.
    assert [kept.find(peer) is not None for peer in "abc"] == [True, False, False]
    kept.keep("a", _heartbeat(9))
    kept.keep("b", _heartbeat(6))
    kept.forget("c")
    assert len(kept) == 2
    kept.forget("a")
    kept.keep("c", _heartbeat(9))
    assert len(kept) == 2


PULL = {
    "consumerGroup": "billing",
    "topic": "Orders",
    "queueId": "0",
    "queueOffset": "42",
    "maxMsgNums": "32",
    "sysFlag": "2",
    "commitOffset": "0",
    "suspendTimeoutMillis": "15000",
    "subVersion": "1",
}


@pytest.mark.parametrize("encoding", HeaderEncoding)
@pytest.mark.parametrize("ext", [{}, {"AccessKey": "me", "Signature": "abc", "bname": "broker-a"}])
def test_what_is_relayed_of_a_request_makes_the_same_frame(
    encoding: HeaderEncoding, ext: dict[str, str]
) -> None:
    sent = Command.request(RequestCode.PULL_MESSAGE, ext=PULL | ext, body=b"{}", opaque=4, encoding=encoding)
    sent.language, sent.version = Language.JAVA, 477
    (received,) = FrameDecoder().feed(encode_command(sent))
    assert received.header(PullMessageRequest).queue_offset == 42
    (again,) = FrameDecoder().feed(encode_command(received))
    assert again == sent
    kept = owned(received)
    assert encode_command(kept) == encode_command(sent)
    assert isinstance(kept.body, bytes)
