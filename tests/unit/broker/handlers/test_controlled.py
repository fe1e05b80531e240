from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec

from tanist.broker.controlled.duty import Controlled
from tanist.broker.handlers.controlled import routes
from tanist.model.offsets import LogOffset
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.replication import OPEN_END, EpochCache, EpochView
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.headers.controller import NotifyRoleChangedRequest
from tests.support.broker_tables import SETTINGS, Asker, open_state
from tests.support.messages import make_message

CONTROLLED = msgspec.structs.replace(SETTINGS, enable_controller_mode=True, controller_addr="c1:9878")


def test_an_operator_is_told_the_epochs_of_the_log(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    with state.store:
        state.store.begin_epoch(1)
        state.store.append(make_message())
        start = state.store.log.log_end
        state.store.begin_epoch(4)
        state.store.append(make_message())
        answer = Asker(routes(state)).ask(RequestCode.GET_BROKER_EPOCH_CACHE)
        assert decode_java_json(answer.body, EpochCache) == EpochCache(
            cluster_name="DefaultCluster",
            broker_name="broker-a",
            broker_id=0,
            epochs=[
                EpochView(epoch=1, start=LogOffset(0), end=start),
                EpochView(epoch=4, start=start, end=OPEN_END),
            ],
            log_end=state.store.log.log_end,
        )


def test_a_log_that_never_had_a_controller_has_no_epochs(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    with state.store:
        answer = Asker(routes(state)).ask(RequestCode.GET_BROKER_EPOCH_CACHE)
        assert decode_java_json(answer.body, EpochCache).epochs == []


def test_a_notification_is_passed_on_as_a_hint(tmp_path: Path) -> None:
    def hint(epoch: int, set_epoch: int) -> None:
        hints.append((epoch, set_epoch))

    state, hints = open_state(tmp_path, CONTROLLED), list[tuple[int, int]]()
    with state.store:
        asker = Asker(routes(state))
        notice = NotifyRoleChangedRequest(
            master_address="10.0.0.9:1", master_epoch=7, sync_state_set_epoch=3, master_broker_id=2
        )
        # It comes before the broker is ready for it: it will ask the controller anyway.
        assert asker.ask(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, notice).code == ResponseCode.SUCCESS
        state.controlled = cast("Controlled", SimpleNamespace(hint=hint))
        asker.ask(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, notice)
        asker.ask(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, NotifyRoleChangedRequest())
    assert hints == [(7, 3), (0, 0)]


def test_without_controller_mode_nobody_can_tell_of_roles(tmp_path: Path) -> None:
    state = open_state(tmp_path)
    with state.store:
        assert RequestCode.NOTIFY_BROKER_ROLE_CHANGED not in routes(state)
