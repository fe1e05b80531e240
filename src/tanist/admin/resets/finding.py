"""Looks up the message that a reset is to go to, by its id or its key."""

from contextlib import suppress

from tanist.admin.parallel import in_parallel
from tanist.admin.resets.aiming import Found
from tanist.admin.resets.places import Place, Places
from tanist.admin.resets.refused import ResetRefused
from tanist.client.session.wire import Wire
from tanist.errors import RemoteProtocolError, ResponseError
from tanist.model.host import host_and_port, unpack_host
from tanist.model.integers import INT64_MAX
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.messages import QueryMessageRequest, ViewMessageRequest
from tanist.protocol.message_id import decode_offset_id
from tanist.protocol.record import Record, decode_record
from tanist.protocol.response_errors import NotFound

_MAX_COUNT = 64


async def find_by_id(wire: Wire, places: Places, message_id: str) -> Found:
    """The message with this id: the one its producer gave it, or that of its place in a log."""
    found = await _search(wire, places, message_id, is_unique_key=True)
    if not found:
        # Most texts are no id of a place, and such an id may well be another cluster's.
        with suppress(RemoteProtocolError, ResponseError):
            found = [await _view(wire, places, message_id)]
    if not found:
        raise ResetRefused(
            f"no broker of {places.topic} has a message {message_id}; it may be deleted, or of another topic"
        )
    return min(found, key=_stored)


async def find_by_key(wire: Wire, places: Places, key: str) -> tuple[Found, int]:
    """The oldest message with this key, and how many of them were found."""
    found = await _search(wire, places, key, is_unique_key=False)
    if not found:
        raise ResetRefused(f"no broker of {places.topic} has a message with the key {key!r}")
    return min(found, key=_stored), len(found)


async def _search(wire: Wire, places: Places, key: str, *, is_unique_key: bool) -> list[Found]:
    header = QueryMessageRequest(
        topic=places.topic,
        key=key,
        max_count=_MAX_COUNT,
        begin_timestamp_ms=0,
        end_timestamp_ms=INT64_MAX,
        is_unique_key=is_unique_key,
    )

    async def look(place: Place) -> list[Found]:
        try:
            answer = await wire.ask(place.address, Command.request(RequestCode.QUERY_MESSAGE, header))
        except NotFound:
            return []
        data, found, position = bytes(answer.body), list[Found](), 0
        while position < len(data):
            record = decode_record(data, position)
            found.append(_found(place, record))
            position += record.size_bytes
        return found

    return [found for part in await in_parallel(places.brokers, look) for found in part]


async def _view(wire: Wire, places: Places, message_id: str) -> Found:
    """By its place: the id says at which broker, and where in its log. Raises if that is none of ours."""
    offset_id = decode_offset_id(message_id)
    address = host_and_port(*unpack_host(offset_id.store_host))
    place = next((each for each in places.brokers if each.address == address), None)
    if place is None:
        raise RemoteProtocolError(f"{address} is no broker of {places.topic}")
    header = ViewMessageRequest(log_offset=offset_id.log_offset, topic=places.topic)
    answer = await wire.ask(place.address, Command.request(RequestCode.VIEW_MESSAGE_BY_ID, header))
    record = decode_record(bytes(answer.body))
    if record.topic != places.topic:
        raise ResetRefused(f"message {message_id} is of topic {record.topic}, not of {places.topic}")
    return _found(place, record)


def _found(place: Place, record: Record) -> Found:
    return Found((place.broker_name, record.queue_id), record.queue_offset, record.store_timestamp_ms)


def _stored(found: Found) -> int:
    return found.stored_ms
