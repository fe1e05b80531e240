"""Consumer groups, as operators, tools and slaves ask for them.

Creates, changes and deletes groups (200, 207), tells one or all (352, 201), and that none has another way
to get its messages than to pull them (402).
"""

import logging

import msgspec

from tanist.broker.names import check_group_name
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.names import shown
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.sync import GroupConfigList, MessageRequestModeTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import GroupRequest
from tanist.protocol.headers.groups import DeleteGroupRequest
from tanist.remoting import Connection, Handler
from tanist.store.store import MAX_QUEUE_ID

_log = logging.getLogger(__name__)


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = GroupHandler(state)
    return {
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: handler.update,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: handler.update_many,
        RequestCode.DELETE_SUBSCRIPTIONGROUP: handler.delete,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: handler.get_all,
        RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: handler.get,
        RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: handler.get_modes,
    }


class GroupHandler:
    """Answers what concerns consumer groups."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def update(self, command: Command, connection: Connection) -> Command:
        config = self._checked(decode_java_json(command.body, SubscriptionGroupConfig))
        _log.info("group update asked group=%s by=%s", config.group_name, connection.peer)
        self._state.groups.put(config)
        return command.reply()

    def update_many(self, command: Command, connection: Connection) -> Command:
        """All or nothing: RocketMQ makes those that come before a wrong one."""
        configs = [self._checked(each) for each in decode_java_json(command.body, GroupConfigList).configs]
        if not configs:
            raise ResponseError(ResponseCode.INVALID_PARAMETER, "the list names no group")
        _log.info("groups update asked count=%d by=%s", len(configs), connection.peer)
        self._state.groups.put(*configs)
        return command.reply()

    def delete(self, command: Command, connection: Connection) -> Command:
        """A group that is not there is as good as deleted. Its offsets go only if that is asked for."""
        request = command.header(DeleteGroupRequest)
        _log.info(
            "group deletion asked group=%s are_offsets_deleted=%s by=%s",
            shown(request.group_name),
            request.are_offsets_deleted,
            connection.peer,
        )
        self._state.groups.delete(request.group_name)
        if request.are_offsets_deleted:
            self._state.offsets.delete_group(request.group_name)
        self._state.counters.forget_group(request.group_name)
        return command.reply()

    def _checked(self, config: SubscriptionGroupConfig) -> SubscriptionGroupConfig:
        """The settings as they are kept. Raises ResponseError for what no group can have."""
        check_group_name(config.group_name)
        if config.attributes:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"unsupported key: {next(iter(config.attributes))}; groups have none",
            )
        if not 0 <= config.retry_queue_count <= MAX_QUEUE_ID:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"retryQueueNums {config.retry_queue_count}; use 0 to {MAX_QUEUE_ID}",
            )
        before = self._state.groups.find(config.group_name)
        return msgspec.structs.replace(config, attributes=before.attributes if before else {})

    def get_all(self, command: Command, _connection: Connection) -> Command:
        """All groups in one answer without a total: that tells who asks in pages that this is the last."""
        return command.reply(body=encode_body(self._state.groups.table))

    def get_modes(self, command: Command, _connection: Connection) -> Command:
        """For slaves of RocketMQ 5, which would tell of an error every time they sync."""
        return command.reply(body=encode_body(MessageRequestModeTable()))

    def get(self, command: Command, _connection: Connection) -> Command:
        """Unlike RocketMQ we do not create the group that was asked about: a look changes nothing."""
        group = command.header(GroupRequest).group
        config = self._state.groups.find(group)
        if config is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {group} does not exist on this broker"
            )
        return command.reply(body=encode_body(config))
