"""Clients: their heartbeats and goodbyes, who is in a group, queue locks, and what operators ask of them.

The tables decide; here their actions are carried out on the connections.
"""

import logging
from collections.abc import Sequence

import msgspec

from tanist.broker.client_limits import MAX_NEW_GROUPS, check_locks
from tanist.broker.clients import Action, AskForSubscriptions, CloseConnection, EnsureGroup, NotifyMembers
from tanist.broker.consumer_group import Client
from tanist.broker.heartbeat import read_heartbeat
from tanist.broker.message_filter import condition_of
from tanist.broker.resets import carrying as resets
from tanist.broker.slave_consume.relay_rules import is_stock
from tanist.broker.state import BrokerState
from tanist.clock import steady_ms
from tanist.errors import ResponseError
from tanist.model.names import shown
from tanist.model.topics import TopicConfig, TopicSysFlag, retry_topic
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.client import (
    ClientConfigCheck,
    ConsumerList,
    LockedQueues,
    QueueLocks,
)
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_command
from tanist.protocol.headers.client import HeartbeatResponse, UnregisterClientRequest
from tanist.protocol.headers.common import ConsumerGroupRequest
from tanist.protocol.headers.groups import ProducerGroupRequest
from tanist.remoting import Connection, Handler

_log = logging.getLogger(__name__)


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = ClientHandler(state)
    return {
        RequestCode.HEART_BEAT: handler.heartbeat,
        RequestCode.UNREGISTER_CLIENT: handler.unregister,
        RequestCode.CHECK_CLIENT_CONFIG: handler.check_config,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP: handler.list_members,
        RequestCode.LOCK_BATCH_MQ: handler.lock_queues,
        RequestCode.UNLOCK_BATCH_MQ: handler.unlock_queues,
        RequestCode.QUERY_ASSIGNMENT: handler.refuse_assignment,
        RequestCode.GET_CONSUMER_CONNECTION_LIST: handler.list_consumers,
        RequestCode.GET_PRODUCER_CONNECTION_LIST: handler.list_producers,
        RequestCode.GET_ALL_PRODUCER_INFO: handler.list_all_producers,
    }


def on_lost(state: BrokerState, connection: Connection) -> None:
    """A connection was closed, by whichever side."""
    if state.resets.watched_groups:
        resets.on_lost(state, connection)
    _carry_out(state, state.clients.on_lost(connection))


def on_tick(state: BrokerState) -> None:
    """Forget silent clients and locks that nobody renewed. To be called every few seconds."""
    state.locks.on_tick(steady_ms(state.clock))
    _carry_out(state, state.clients.on_tick(state.clock.now_ms()))


def on_readable(state: BrokerState) -> None:
    """This broker may be read: whoever was only noted is a member."""
    _carry_out(state, state.clients.on_readable())


def on_expected_over(state: BrokerState) -> None:
    """Whoever was expected has had time to come: those who are here divide the queues among themselves."""
    _carry_out(state, state.clients.on_expected_over())


class ClientHandler:
    """Answers what clients say of themselves, and what is asked about them."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def heartbeat(self, command: Command, connection: Connection) -> Command:
        heartbeat = read_heartbeat(command)
        client = Client(connection, heartbeat.client_id, command.language.name, command.version)
        right = self._state.read_right
        refusal = right.refusal() if right is not None and heartbeat.consumer_data_set else None
        if refusal is not None and is_stock(command.language):
            # Its client says the same to every broker of its route, over and over: it is noted, for the
            # time when this one is read.
            refusal = None
        if refusal is not None:
            # Its producers can not help that its consumers have to go elsewhere.
            heartbeat = msgspec.structs.replace(heartbeat, consumer_data_set=[])
        actions = self._state.clients.on_heartbeat(client, heartbeat, now_ms=self._state.clock.now_ms())
        _carry_out(self._state, actions)
        if self._state.resets.watched_groups:
            groups = [consumer.group_name for consumer in heartbeat.consumer_data_set]
            resets.on_members(self._state, client, groups)
        if refusal is not None:
            raise refusal
        if not heartbeat.heartbeat_fingerprint:
            return command.reply()
        # Offers the short form, and takes the offer back for once if we lack what it stood for.
        is_lacking = any(isinstance(action, AskForSubscriptions) for action in actions)
        header = HeartbeatResponse(is_heartbeat_v2_supported=True, is_subscription_changed=is_lacking)
        return command.reply(header=header)

    def unregister(self, command: Command, connection: Connection) -> Command:
        request = command.header(UnregisterClientRequest)
        if self._state.resets.watched_groups and request.consumer_group is not None:
            resets.on_left(self._state, connection, request.consumer_group)
        actions = self._state.clients.on_unregister(
            connection, consumer_group=request.consumer_group, producer_group=request.producer_group
        )
        _carry_out(self._state, actions)
        return command.reply()

    def check_config(self, command: Command, _connection: Connection) -> Command:
        wanted = decode_java_json(command.body, ClientConfigCheck).subscription_data
        condition_of(wanted, is_sql_enabled=self._state.settings.enable_property_filter)
        return command.reply()

    def list_members(self, command: Command, _connection: Connection) -> Command:
        group = command.header(ConsumerGroupRequest).consumer_group
        client_ids = self._state.clients.member_ids(group)
        if not client_ids:
            # An error and not an empty list: members keep their queues on an error.
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"group {group} has no consumer online")
        return command.reply(body=encode_body(ConsumerList(client_ids=client_ids)))

    def lock_queues(self, command: Command, _connection: Connection) -> Command:
        wanted = decode_java_json(command.body, QueueLocks)
        check_locks(wanted.client_id, wanted.consumer_group, wanted.queues)
        held = self._state.locks.lock(
            wanted.consumer_group,
            wanted.queues,
            client_id=wanted.client_id,
            now_ms=steady_ms(self._state.clock),
        )
        return command.reply(body=encode_body(LockedQueues(queues=held)))

    def unlock_queues(self, command: Command, _connection: Connection) -> Command:
        given_up = decode_java_json(command.body, QueueLocks)
        self._state.locks.unlock(given_up.consumer_group, given_up.queues, client_id=given_up.client_id)
        return command.reply()

    def refuse_assignment(self, command: Command, _connection: Connection) -> Command:
        return command.reply(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            remark="this broker assigns no queues: leave clientRebalance at true",
        )

    def list_consumers(self, command: Command, _connection: Connection) -> Command:
        group = command.header(ConsumerGroupRequest).consumer_group
        found = self._state.clients.consumer_connections(group)
        if found is None:
            raise ResponseError(ResponseCode.CONSUMER_NOT_ONLINE, f"group {group} has no consumer online")
        return command.reply(body=encode_body(found))

    def list_producers(self, command: Command, _connection: Connection) -> Command:
        group = command.header(ProducerGroupRequest).producer_group
        found = self._state.clients.producer_connections(group)
        if found is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"group {group} has no producer online")
        return command.reply(body=encode_body(found))

    def list_all_producers(self, command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_body(self._state.clients.producer_table()))


def _carry_out(state: BrokerState, actions: Sequence[Action]) -> None:
    _ensure_groups(state, {action.group: action for action in actions if isinstance(action, EnsureGroup)})
    for action in actions:
        match action:
            case EnsureGroup():
                pass  # All of them together, before.
            case NotifyMembers():
                _notify(state, action)
            case CloseConnection(connection, reason):
                connection.close(reason)
            case AskForSubscriptions():
                pass  # The answer to the heartbeat does it.


def _ensure_groups(state: BrokerState, wanted: dict[str, EnsureGroup]) -> None:
    """Clients and operators find a group through the route of its retry topic.

    All new groups are one change, and so are their topics: each change is a whole table on the disk.
    Without room for its topic a group still consumes; who sends something back is told why it can not.
    """
    if state.settings.is_slave:
        # The same clients tell the master, and from there the groups come.
        return
    groups = state.groups.ensure_several(wanted, max_new=MAX_NEW_GROUPS)
    missing = [
        TopicConfig(
            topic_name=topic,
            read_queue_count=config.retry_queue_count,
            write_queue_count=config.retry_queue_count,
            topic_sys_flag=int(TopicSysFlag.UNIT_SUB) if wanted[group].is_unit_mode else 0,
        )
        for group, config in groups.items()
        if state.topics.find(topic := retry_topic(group)) is None
    ]
    state.topics.add_several(missing, max_new=MAX_NEW_GROUPS)


def _notify(state: BrokerState, change: NotifyMembers) -> None:
    _log.info(
        "group membership changed group=%s connections=%d", shown(change.group), len(change.connections)
    )
    config = state.groups.find(change.group)
    if config is not None and not config.is_change_notified:
        return
    header = ConsumerGroupRequest(consumer_group=change.group)
    frame = encode_command(Command.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header, is_one_way=True))
    for connection in change.connections:
        connection.send(frame)
