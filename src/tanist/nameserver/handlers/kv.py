"""Operators: keys and values by namespace."""

from tanist.nameserver.handlers.context import Context, Handle
from tanist.nameserver.kv_file import Change
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.tables import KVTable
from tanist.protocol.headers.nameserver import (
    GetKVConfigResponse,
    KVConfigRequest,
    KVNamespaceRequest,
    PutKVConfigRequest,
)
from tanist.remoting import Connection


def put(context: Context, request: Command, connection: Connection) -> Command | None:
    header = request.header(PutKVConfigRequest)
    return _change(
        context,
        request,
        connection,
        lambda table: table.with_value(header.namespace, header.key, header.value),
    )


def delete(context: Context, request: Command, connection: Connection) -> Command | None:
    header = request.header(KVConfigRequest)
    return _change(context, request, connection, lambda table: table.without(header.namespace, header.key))


def get(context: Context, request: Command, _connection: Connection) -> Command:
    header = request.header(KVConfigRequest)
    value = context.kv.current.value(header.namespace, header.key)
    if value is None:
        remark = f"no key {header.key} in namespace {header.namespace}"
        return request.reply(ResponseCode.QUERY_NOT_FOUND, remark=remark)
    return request.reply(header=GetKVConfigResponse(value=value))


def get_namespace(context: Context, request: Command, _connection: Connection) -> Command:
    namespace = request.header(KVNamespaceRequest).namespace
    values = context.kv.current.values(namespace)
    if values is None:
        return request.reply(ResponseCode.QUERY_NOT_FOUND, remark=f"no namespace {namespace}")
    return request.reply(body=encode_body(KVTable(table=values)))


def _change(context: Context, request: Command, connection: Connection, change: Change) -> Command | None:
    """Answer when the change is on disk."""

    def answer(failure: Exception | None) -> None:
        if request.is_one_way:
            return
        if failure is None:
            connection.send(request.reply())
        else:
            connection.send(request.reply(ResponseCode.SYSTEM_ERROR, remark=f"not kept: {failure}"))

    if not context.kv.submit(change, answer):
        return request.reply(ResponseCode.SYSTEM_BUSY, remark="no more changes can be kept now")
    return None


HANDLERS: dict[RequestCode, Handle] = {
    RequestCode.PUT_KV_CONFIG: put,
    RequestCode.GET_KV_CONFIG: get,
    RequestCode.DELETE_KV_CONFIG: delete,
    RequestCode.GET_KVLIST_BY_NAMESPACE: get_namespace,
}
