"""The famous attacks on the pure end of a classic link, said from an address that may speak that way.

Nobody proves anything there, so what can be true is believed. What can not be true is not.
"""

import random
from collections.abc import Iterator

import pytest

from tanist.ha.actions import CloseKind, CloseLink, MasterAction, SendBytes, StartTransfer
from tanist.ha.classic_master import ClassicMasterLink
from tanist.store import MessageStore
from tests.support.ha_attacks import random_strings, report
from tests.support.messages import make_message, open_store

_SILENCE_S = 20.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageStore]:
    with open_store(tmp_path_factory.mktemp("store")) as store:
        for number in range(20):
            store.append(make_message(number))
        yield store


def attacked(store: MessageStore) -> ClassicMasterLink:
    return ClassicMasterLink(store.log, 0, 1 << 15, now_s=0.0, heartbeat_s=5.0, silence_s=_SILENCE_S)


def wait_in_vain(link: ClassicMasterLink, store: MessageStore) -> list[MasterAction]:
    return link.on_tick(log_end=store.log.log_end, now_s=_SILENCE_S)


@pytest.mark.behaviour("S5-20")
def test_10000_random_byte_strings_get_not_a_byte(store: MessageStore) -> None:
    for said in random_strings(10_000):
        link = attacked(store)
        actions = link.on_bytes(said, now_s=1.0) + wait_in_vain(link, store)
        (closing,) = actions
        assert isinstance(closing, CloseLink)
        assert closing.kind is (CloseKind.REFUSED if len(said) >= 8 else CloseKind.TOO_SLOW)


def test_of_all_first_reports_only_ends_of_records_are_believed(store: MessageStore) -> None:
    log = store.log
    believed = [
        offset
        for offset in range(-3, log.log_end + 3)
        if any(
            isinstance(action, StartTransfer)
            for action in attacked(store).on_bytes(report(offset), now_s=1.0)
        )
    ]
    assert believed == [offset for offset in range(log.log_end + 1) if log.is_record_start(offset)]
    assert len(believed) == 21


@pytest.mark.behaviour("S5-2", "S5-3")
def test_no_ack_is_believed_that_was_not_sent_or_goes_back(store: MessageStore) -> None:
    log_end, chance = store.log.log_end, random.Random(7)
    for _ in range(1_000):
        link = attacked(store)
        link.on_bytes(report(log_end), now_s=1.0)
        lie = chance.randrange(-(1 << 63), 1 << 63) >> chance.randrange(63)
        actions = link.on_bytes(report(lie), now_s=2.0)
        assert link.acked_to == log_end
        assert not [action for action in actions if isinstance(action, SendBytes)]
        assert bool(actions) is (lie != log_end)
