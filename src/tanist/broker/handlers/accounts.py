"""Accounts and permissions, which RocketMQ lets operators change from afar: 50 to 53, 3001 to 3010 in 5.3.

Here the files of access rules have one writer, who edits them. So all of it is refused, with where to go.
"""

from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.remoting import Connection, Handler

_REFUSED = (
    *(code for code in RequestCode if code.name.startswith("AUTH_")),
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
    RequestCode.DELETE_ACL_CONFIG,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
)


def routes(_state: BrokerState) -> dict[int, Handler]:
    return dict.fromkeys(_REFUSED, _refuse)


def _refuse(_command: Command, _connection: Connection) -> Command:
    raise ResponseError(
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        "this broker has no accounts but those of plain_acl.yml: edit that file, the broker follows it",
    )
