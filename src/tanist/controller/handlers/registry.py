"""Brokers with fixed roles: the registry of this controller, if it keeps its own in a file."""

from tanist.controller.decisions import Answer
from tanist.controller.handlers.context import Context, Handle
from tanist.controller.remote_sessions import ROOT, RemoteSessions
from tanist.coord import Change, Conflict
from tanist.coord.remote_messages import (
    changes_below,
    check_remote_path,
    check_timeout,
    decode_changes,
    path_below,
)
from tanist.coord.sqlite_registry import SqliteRegistry
from tanist.errors import ResponseError
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.coord import ChildrenBody, CommitOutcome
from tanist.protocol.headers.coord import (
    OpenSessionRequest,
    OpenSessionResponse,
    PathRequest,
    ReadResponse,
    SessionRequest,
    WatchRequest,
)
from tanist.remoting import Connection


def open_session(context: Context, request: Command, connection: Connection) -> None:
    timeout_s = request.header(OpenSessionRequest).timeout_ms / 1000
    try:
        check_timeout(timeout_s)
    except ValueError as error:
        raise _not_allowed(error) from error
    context.answer_later(request, connection, _opened(_sessions(context), timeout_s, connection))


def keep_session(context: Context, request: Command, connection: Connection) -> Command:
    _sessions(context).keep(request.header(SessionRequest).session, connection)
    return request.reply()


def close_session(context: Context, request: Command, connection: Connection) -> None:
    making = _closed(_sessions(context), request.header(SessionRequest).session)
    context.answer_later(request, connection, making)


def read(context: Context, request: Command, connection: Connection) -> None:
    header = request.header(PathRequest)
    session = _sessions(context).acting(header.session, connection)
    context.answer_later(request, connection, _read(session, _path(header.path)))


def children(context: Context, request: Command, connection: Connection) -> None:
    header = request.header(PathRequest)
    session = _sessions(context).acting(header.session, connection)
    context.answer_later(request, connection, _named(session, _path(header.path)))


def commit(context: Context, request: Command, connection: Connection) -> None:
    session = _sessions(context).acting(request.header(SessionRequest).session, connection)
    try:
        changes = changes_below(ROOT, decode_changes(request.body))
    except ValueError as error:
        raise _not_allowed(error) from error
    context.answer_later(request, connection, _committed(session, changes))


def watch(context: Context, request: Command, connection: Connection) -> Command:
    header = request.header(WatchRequest)
    sessions = _sessions(context)
    change = sessions.watch if header.is_wanted else sessions.unwatch
    _path(header.path)
    change(header.session, header.path, connection)
    return request.reply()


async def _opened(sessions: RemoteSessions, timeout_s: float, connection: Connection) -> Answer:
    return Answer(header=OpenSessionResponse(session=await sessions.open(timeout_s, connection)))


async def _closed(sessions: RemoteSessions, token: str) -> Answer:
    await sessions.close(token)
    return Answer()


async def _read(session: SqliteRegistry, path: str) -> Answer:
    record = await session.read(path)
    if record is None:
        return Answer(header=ReadResponse())
    return Answer(header=ReadResponse(version=record.version), body=record.value)


async def _named(session: SqliteRegistry, path: str) -> Answer:
    return Answer(body=encode_body(ChildrenBody(names=await session.children(path))))


async def _committed(session: SqliteRegistry, changes: list[Change]) -> Answer:
    try:
        outcome = CommitOutcome(versions=await session.commit(*changes))
    except Conflict as conflict:
        # Two changes may be equal: it is the very one that failed.
        (at,) = (index for index, change in enumerate(changes) if change is conflict.change)
        outcome = CommitOutcome(conflict_at=at)
    return Answer(body=encode_body(outcome))


def _sessions(context: Context) -> RemoteSessions:
    if context.remote_sessions is None:
        url = context.settings.current.registry_url
        raise ResponseError(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            f"this controller has no registry of its own; use coordinator={url}, as it does",
        )
    return context.remote_sessions


def _path(path: str) -> str:
    """Where a path that a broker names lies in our registry."""
    try:
        return path_below(ROOT, check_remote_path(path))
    except ValueError as error:
        raise _not_allowed(error) from error


def _not_allowed(error: ValueError) -> ResponseError:
    return ResponseError(ResponseCode.INVALID_PARAMETER, str(error))


HANDLERS: dict[RequestCode, Handle] = {
    RequestCode.REGISTRY_OPEN_SESSION: open_session,
    RequestCode.REGISTRY_KEEP_SESSION: keep_session,
    RequestCode.REGISTRY_CLOSE_SESSION: close_session,
    RequestCode.REGISTRY_READ: read,
    RequestCode.REGISTRY_CHILDREN: children,
    RequestCode.REGISTRY_COMMIT: commit,
    RequestCode.REGISTRY_WATCH: watch,
}
