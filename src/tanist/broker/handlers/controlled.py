"""What controllers tell a replica (1008), and what operators ask of its epochs (1007)."""

from tanist.broker.state import BrokerState
from tanist.model.offsets import LogOffset
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.replication import OPEN_END, EpochCache, EpochView
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.controller import NotifyRoleChangedRequest
from tanist.remoting import Connection, Handler


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = ControlledHandler(state)
    served: dict[int, Handler] = {RequestCode.GET_BROKER_EPOCH_CACHE: handler.get_epochs}
    if state.settings.enable_controller_mode:
        served[RequestCode.NOTIFY_BROKER_ROLE_CHANGED] = handler.on_role_changed
    return served


class ControlledHandler:
    """Answers for one replica."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def get_epochs(self, command: Command, _connection: Connection) -> Command:
        """All epochs of the log. The last one is still being written."""
        state = self._state
        epochs = state.store.epochs.epochs
        ends = [*(epoch.start for epoch in epochs[1:]), OPEN_END]
        cache = EpochCache(
            cluster_name=state.settings.broker_cluster_name,
            broker_name=state.settings.broker_name,
            broker_id=state.settings.broker_id,
            epochs=[
                EpochView(epoch=epoch.epoch, start=epoch.start, end=end)
                for epoch, end in zip(epochs, ends, strict=False)
            ],
            log_end=LogOffset(state.store.log.log_end),
        )
        return command.reply(body=encode_body(cache))

    def on_role_changed(self, command: Command, _connection: Connection) -> Command:
        """Anybody can send this, so it is only a hint: the controller is asked, and decides."""
        notice = command.header(NotifyRoleChangedRequest)
        if self._state.controlled is not None:
            self._state.controlled.hint(notice.master_epoch or 0, notice.sync_state_set_epoch or 0)
        return command.reply()
