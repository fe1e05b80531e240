"""Who lies to a slave: nothing is appended that its master did not send, and nothing is acked."""

import zlib
from typing import Final

import pytest

from tanist.ha.actions import AppendLog, CloseKind, CloseLink, FollowLog, SlaveAction
from tanist.ha.keys import HaKeys
from tanist.ha.slave_link import HELLO_S, SlaveLink, SlaveState
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import Accepted, encode_verdict
from tanist.protocol.ha_link import Heartbeat, encode_data_header, encode_heartbeat
from tests.support.ha_attacks import HUGE, random_strings, report
from tests.support.ha_ends import INCARNATION, KEYS, LOG, bytes_of, master_link, meet, slave_link

END: Final = len(LOG)


def following(log_end: int = END) -> SlaveLink:
    """A slave's end of a link on which its master has let it in."""
    slave = slave_link(log_end)
    _, actions = meet(slave, master_link())
    assert slave.on_bytes(memoryview(bytes_of(actions)), now_s=0.4)[0] == [FollowLog(INCARNATION)]
    return slave


def hear(slave: SlaveLink, said: bytes) -> list[SlaveAction]:
    return slave.on_bytes(memoryview(said), now_s=0.5)[0]


def data(log_offset: int, body: bytes) -> bytes:
    crc = zlib.crc32(body)
    return encode_data_header(log_offset, len(body), epoch=0, confirmed_to=0, body_crc=crc) + body


def assert_closed(slave: SlaveLink, actions: list[SlaveAction], kind: CloseKind) -> None:
    (action,) = actions
    assert isinstance(action, CloseLink)
    assert action.kind is kind
    assert slave.state is SlaveState.CLOSED


def test_10000_random_answers_make_a_slave_say_no_more_than_hello() -> None:
    for said in random_strings(10_000):
        slave = slave_link()
        slave.on_connected()
        actions = hear(slave, said) + slave.on_tick(now_s=HELLO_S)
        assert len(actions) == 1
        assert isinstance(actions[0], CloseLink)


def test_a_master_of_rocketmq_is_not_taken_for_one_of_ours() -> None:
    slave = slave_link()
    slave.on_connected()
    assert_closed(slave, hear(slave, report(END) + bytes(4)), CloseKind.NO_HELLO)


def test_a_master_with_another_secret_is_told_nothing_about_the_log() -> None:
    slave = slave_link(keys=HaKeys(KEYS.group, KEYS.authentication, b"a secret of somebody else"))
    answer = bytes_of(master_link().on_bytes(bytes_of(slave.on_connected()), now_s=0.1))
    assert_closed(slave, hear(slave, answer), CloseKind.NOT_PROVEN)


def test_a_verdict_that_somebody_else_makes_up_is_not_believed() -> None:
    slave, master = slave_link(), master_link()
    meet(slave, master)
    forged = encode_verdict(Accepted(LogOffset(END)), KEYS.authentication) + bytes(32)
    assert_closed(slave, hear(slave, forged), CloseKind.NOT_PROVEN)


HEADS: Final = {
    "of 2^32-1 bytes": b"\x01\xff\xff\xff\xff",
    "of 4 MiB and a byte": b"\x01\x00\x40\x00\x01",
    "of no bytes": b"\x01\x00\x00\x00\x00",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_a_body_that_says_it_is_too_long_is_closed_at_its_head(head: bytes) -> None:
    slave = following()
    whole_head = data(END, b"x")[:-1]
    assert_closed(slave, hear(slave, head + whole_head[len(head) :]), CloseKind.BAD_FRAME)


def test_bytes_of_another_place_are_not_appended() -> None:
    for place in (END - 1, END + 1, 0, HUGE):
        slave = following()
        assert_closed(slave, hear(slave, data(place, b"log")), CloseKind.WRONG_OFFSET)
        assert slave.log_end == END


def test_a_body_changed_on_the_way_is_not_appended() -> None:
    frame = data(END, b"bytes of the log")
    for place in range(len(frame)):
        slave = following()
        changed = bytearray(frame)
        changed[place] ^= 1 << place % 8
        actions = hear(slave, bytes(changed))
        # A larger size waits for more bytes.
        assert not [action for action in actions if isinstance(action, AppendLog)]


def test_a_heartbeat_of_a_log_shorter_than_ours_ends_the_link() -> None:
    slave = following()
    beat = encode_heartbeat(Heartbeat(LogOffset(END - 1), 0, LogOffset(0)))
    assert_closed(slave, hear(slave, beat), CloseKind.WRONG_OFFSET)


def test_random_byte_strings_of_a_proven_master_are_no_log() -> None:
    for said in random_strings(1_000):
        slave = following()
        assert not [action for action in hear(slave, said) if not isinstance(action, CloseLink)]
        assert slave.log_end == slave.acked_to == END
