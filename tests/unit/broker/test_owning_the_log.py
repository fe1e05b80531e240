"""How a replica makes its log a master's."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tanist.broker.controlled.orders import MasterOrder
from tanist.broker.roles import Roles
from tanist.errors import StaleEpoch
from tanist.store import FlushMode, MessageStore
from tests.support.messages import SMALL, bodies, make_message, numbered


def _own_log(store: MessageStore, order: MasterOrder) -> None:
    roles = cast("Any", object.__new__(Roles))
    roles._state, roles._broker_id = SimpleNamespace(store=store), lambda: 1
    asyncio.run(roles._own_log(order))


@pytest.mark.behaviour("S2-48")
def test_an_order_of_an_epoch_that_is_over_confirms_and_shows_nothing(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path, SMALL, waits_for_confirm=True) as store:
        store.begin_epoch(5)
        store.append(make_message(0))
        alone = frozenset({1})
        with pytest.raises(StaleEpoch, match="epoch 4 is over: the log has epoch 5"):
            _own_log(store, MasterOrder(4, alone, 1))
        assert store.dispatcher.confirmed_to == 0
        assert bodies(store) == []
        _own_log(store, MasterOrder(6, alone, 2))
        assert bodies(store) == numbered(0)
        assert store.epochs.last == (6, store.log.log_end)


@pytest.mark.parametrize("mode", FlushMode)
def test_what_a_master_confirms_alone_is_on_its_disk_if_that_is_what_sends_wait_for(
    tmp_path: Path, mode: FlushMode
) -> None:
    settings = msgspec.structs.replace(SMALL, flush_disk_type=mode)
    with MessageStore.open(tmp_path, settings, waits_for_confirm=True) as store:
        end = store.append(make_message(0)).end
        assert store.log.flushed_to < end
        _own_log(store, MasterOrder(1, frozenset({1}), 1))
        assert store.dispatcher.confirmed_to == end
        assert (store.log.flushed_to == end) is (mode is FlushMode.SYNC_FLUSH)
