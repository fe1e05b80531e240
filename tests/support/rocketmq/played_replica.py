"""A replica that only RocketMQ's controller and a name server know of: its log is wherever the test has it.

with PlayedReplica(controller.address, rocketmq.name_server, name="broker-a") as replica:
    epoch = replica.offer()
    replica.tell_place(ha_address)
"""

import contextlib
from types import TracebackType
from typing import Self

import msgspec

from tanist.model.offsets import LogOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.registration import RegisterBrokerBody
from tanist.protocol.bodies.replication import SyncStateSet
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    ElectMasterResponse,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
    RegisterReplicaRequest,
)
from tanist.protocol.headers.nameserver import RegisterBrokerRequest
from tests.support.controllers import ControllerView
from tests.support.wire import Wire

_CLUSTER = "tanist-tests"
_ADDRESS = "127.0.0.1:1"
"""Nobody answers there: the tables of a slave stay as they are."""
_FOREVER_MS = 600_000


class PlayedReplica:
    """Alive while its connections are open, for both take a broker for dead whose connection is closed."""

    broker_id: int

    def __init__(self, controller: str, name_server: str, *, name: str) -> None:
        self._controller = controller
        self._name_server = name_server
        self._name = name
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        name = self._name
        self._to_controller = self._open.enter_context(Wire(self._controller))
        self._to_names = self._open.enter_context(Wire(self._name_server))
        following = self._ask(
            RequestCode.CONTROLLER_GET_NEXT_BROKER_ID,
            GetNextBrokerIdRequest(cluster_name=_CLUSTER, broker_name=name),
        ).header(GetNextBrokerIdResponse)
        assert following.next_broker_id is not None
        self.broker_id = following.next_broker_id
        self._ask(
            RequestCode.CONTROLLER_APPLY_BROKER_ID,
            ApplyBrokerIdRequest(
                cluster_name=_CLUSTER,
                broker_name=name,
                applied_broker_id=self.broker_id,
                register_check_code=f"{_ADDRESS};1",
            ),
        )
        self._ask(
            RequestCode.CONTROLLER_REGISTER_BROKER,
            RegisterReplicaRequest(
                cluster_name=_CLUSTER, broker_name=name, broker_id=self.broker_id, broker_address=_ADDRESS
            ),
        )
        self._ask(
            RequestCode.BROKER_HEARTBEAT,
            BrokerHeartbeatRequest(
                cluster_name=_CLUSTER,
                broker_addr=_ADDRESS,
                broker_name=name,
                broker_id=self.broker_id,
                epoch=1,
                log_end=LogOffset(0),
                confirmed_to=LogOffset(0),
                heartbeat_timeout_ms=_FOREVER_MS,
            ),
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.die()

    def die(self) -> None:
        """Close its connections, as the end of its process would."""
        self._open.close()

    def offer(self) -> int:
        """Have itself elected; its epoch."""
        elected = self._ask(
            RequestCode.CONTROLLER_ELECT_MASTER,
            ElectMasterRequest(
                cluster_name=_CLUSTER, broker_name=self._name, broker_id=self.broker_id, is_designated=False
            ),
        ).header(ElectMasterResponse)
        assert elected.master_broker_id == self.broker_id
        assert elected.master_epoch is not None
        return elected.master_epoch

    def tell_place(self, ha_address: str) -> None:
        """Tell the name server, as master, where slaves find the log."""
        header = RegisterBrokerRequest(
            cluster_name=_CLUSTER,
            broker_name=self._name,
            broker_addr=_ADDRESS,
            ha_server_addr=ha_address,
            broker_id=0,
            heartbeat_timeout_ms=_FOREVER_MS,
        )
        request = Command.request(
            RequestCode.REGISTER_BROKER, header, body=msgspec.json.encode(RegisterBrokerBody())
        )
        assert self._to_names.ask(request).code == ResponseCode.SUCCESS

    def take_into_set(self, *broker_ids: int) -> None:
        """As master, say that these replicas are in step with it."""
        with ControllerView(self._controller) as view:
            known = view.group(self._name)
        in_step = SyncStateSet(
            broker_ids=frozenset({self.broker_id, *broker_ids}), epoch=known.sync_state_set_epoch
        )
        self._ask(
            RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
            AlterSyncStateSetRequest(
                broker_name=self._name, master_broker_id=self.broker_id, master_epoch=known.master_epoch
            ),
            msgspec.json.encode(in_step),
        )

    def _ask(self, code: RequestCode, header: Header, body: bytes = b"") -> Command:
        answer = self._to_controller.ask(Command.request(code, header, body=body))
        assert answer.code == ResponseCode.SUCCESS, (code, answer.remark)
        return answer
