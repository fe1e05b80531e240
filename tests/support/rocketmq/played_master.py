"""A master that only RocketMQ's controller and a name server know of: the log to follow is elsewhere.

with played_master(controller.address, rocketmq.name_server, name="broker-a", ha_address=address) as epoch:
    start_replica(rocketmq, controller.address)
"""

import contextlib
from collections.abc import Generator

import msgspec

from tanist.model.offsets import LogOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.registration import RegisterBrokerBody
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.controller import (
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    ElectMasterResponse,
    RegisterReplicaRequest,
)
from tanist.protocol.headers.nameserver import RegisterBrokerRequest
from tests.support.wire import Wire

_CLUSTER = "tanist-tests"
_ADDRESS = "127.0.0.1:1"
"""Nobody answers there: the tables of a slave stay as they are."""
_ID = 1
_FOREVER_MS = 600_000


@contextlib.contextmanager
def played_master(controller: str, name_server: str, *, name: str, ha_address: str) -> Generator[int]:
    """Be the master of a new group while the block lasts; its epoch."""
    # Both take a broker for dead whose connection is closed.
    with Wire(controller) as to_controller, Wire(name_server) as to_names:
        for code, header in (
            (
                RequestCode.CONTROLLER_APPLY_BROKER_ID,
                ApplyBrokerIdRequest(
                    cluster_name=_CLUSTER,
                    broker_name=name,
                    applied_broker_id=_ID,
                    register_check_code=f"{_ADDRESS};1",
                ),
            ),
            (
                RequestCode.CONTROLLER_REGISTER_BROKER,
                RegisterReplicaRequest(
                    cluster_name=_CLUSTER, broker_name=name, broker_id=_ID, broker_address=_ADDRESS
                ),
            ),
            (
                RequestCode.BROKER_HEARTBEAT,
                BrokerHeartbeatRequest(
                    cluster_name=_CLUSTER,
                    broker_name=name,
                    broker_addr=_ADDRESS,
                    broker_id=_ID,
                    epoch=1,
                    log_end=LogOffset(0),
                    confirmed_to=LogOffset(0),
                    heartbeat_timeout_ms=_FOREVER_MS,
                ),
            ),
        ):
            _ask(to_controller, code, header)
        elected = _ask(
            to_controller,
            RequestCode.CONTROLLER_ELECT_MASTER,
            ElectMasterRequest(cluster_name=_CLUSTER, broker_name=name, broker_id=_ID, is_designated=False),
        ).header(ElectMasterResponse)
        _ask(
            to_names,
            RequestCode.REGISTER_BROKER,
            RegisterBrokerRequest(
                cluster_name=_CLUSTER,
                broker_name=name,
                broker_addr=_ADDRESS,
                ha_server_addr=ha_address,
                broker_id=0,
                heartbeat_timeout_ms=_FOREVER_MS,
            ),
            msgspec.json.encode(RegisterBrokerBody()),
        )
        assert elected.master_epoch is not None
        yield elected.master_epoch


def _ask(wire: Wire, code: RequestCode, header: Header, body: bytes = b"") -> Command:
    answer = wire.ask(Command.request(code, header, body=body))
    assert answer.code == ResponseCode.SUCCESS, (code, answer.remark)
    return answer
