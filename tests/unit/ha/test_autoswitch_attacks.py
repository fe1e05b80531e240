"""Attacks on both pure ends of an auto-switch link, said from an address that may speak that way."""

import random
from collections.abc import Iterator

import pytest

from tanist.ha.actions import AppendLog, CloseKind, CloseLink, SendBytes, StartTransfer, TruncateTo
from tanist.protocol.ha_autoswitch import (
    MasterHandshake,
    SlaveHandshake,
    encode_master_handshake,
    encode_slave_handshake,
    encode_slave_report,
)
from tanist.store import MessageStore
from tests.support.autoswitch import BROKER_ID, history, master_link, open_reigns, slave_link
from tests.support.ha_attacks import random_strings

_HANDSHAKE = encode_slave_handshake(SlaveHandshake(BROKER_ID))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageStore]:
    with open_reigns(tmp_path_factory.mktemp("store"), ((1, 12), (2, 8))) as store:
        yield store


@pytest.mark.behaviour("S5-20")
def test_random_byte_strings_get_not_a_byte(store: MessageStore) -> None:
    for said in random_strings(3_000):
        link = master_link(store)
        (closing,) = link.on_bytes(said, now_s=101.0) + link.on_tick(log_end=store.log.log_end, now_s=120.0)
        assert isinstance(closing, CloseLink)
        assert closing.kind in (CloseKind.NO_HELLO, CloseKind.TOO_SLOW)


def test_after_a_handshake_random_byte_strings_get_the_answer_and_not_a_byte_of_the_log(
    store: MessageStore,
) -> None:
    for said in random_strings(3_000):
        link = master_link(store)
        answer, *rest = link.on_bytes(_HANDSHAKE, now_s=100.0) + link.on_bytes(said, now_s=101.0)
        assert isinstance(answer, SendBytes)
        assert not any(isinstance(action, StartTransfer | SendBytes) for action in rest)
        assert not link.is_transferring


@pytest.mark.behaviour("S5-2", "S5-3", "S5-4")
def test_no_ack_is_believed_that_was_not_sent_or_goes_back(store: MessageStore) -> None:
    log_end, chance = store.log.log_end, random.Random(7)
    for _ in range(1_000):
        link = master_link(store)
        link.on_bytes(_HANDSHAKE + encode_slave_report(log_end), now_s=100.0)
        lie = chance.randrange(-(1 << 63), 1 << 63) >> chance.randrange(63)
        raw = b"\0\0\0\2" + lie.to_bytes(8, "big", signed=True)
        actions = link.on_bytes(raw, now_s=101.0)
        assert link.acked_to == log_end
        assert bool(actions) is (lie != log_end)


def test_random_byte_strings_of_a_master_change_nothing_of_a_slave() -> None:
    chance = random.Random(3)
    answer = encode_master_handshake(
        MasterHandshake(history((1, 0)).epochs[0].start, 1, history((1, 0)).epochs)
    )
    for number, said in enumerate(random_strings(3_000)):
        link = slave_link()
        link.on_connected()
        if number % 2:
            link.on_bytes(memoryview(answer), now_s=100.0)
            said = bytes([0, 0, 0, 2, *(chance.randrange(256) for _ in range(4))]) + said  # noqa: PLW2901
        actions, used = link.on_bytes(memoryview(said), now_s=101.0)
        assert used == len(said)
        assert not any(isinstance(action, AppendLog | TruncateTo) for action in actions)
        assert link.log_end == 0
