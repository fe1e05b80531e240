"""Topics that a test has brokers make, and where clients find them."""

from tanist.model.route import TopicRouteData
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.headers.common import TopicRequest
from tanist.protocol.headers.nameserver import DeleteTopicInNameserverRequest, GetRouteRequest
from tanist.protocol.headers.topics import UpdateTopicRequest
from tests.support.wire import Wire


def create_topic(address: str, topic: str, *, queue_count: int = 4) -> None:
    """Have a broker make a topic."""
    header = UpdateTopicRequest(
        topic=topic,
        default_topic="TBW102",
        read_queue_count=queue_count,
        write_queue_count=queue_count,
        perm=6,
        topic_filter_type="SINGLE_TAG",
    )
    with Wire(address) as wire:
        answer = wire.ask(Command.request(RequestCode.UPDATE_AND_CREATE_TOPIC, header))
    assert answer.code == ResponseCode.SUCCESS


def delete_topic(address: str, name_server: str, topic: str) -> None:
    """Have a broker forget a topic and all its messages, and the name server where it was."""
    orders = {
        address: Command.request(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic=topic)),
        name_server: Command.request(
            RequestCode.DELETE_TOPIC_IN_NAMESRV, DeleteTopicInNameserverRequest(topic=topic)
        ),
    }
    for asked, order in orders.items():
        with Wire(asked) as wire:
            assert wire.ask(order).code == ResponseCode.SUCCESS


def route_brokers(name_server: str, topic: str) -> set[str]:
    """The names of the brokers that clients are told to find a topic at."""
    found = find_route(name_server, topic)
    return set() if found is None else {queue.broker_name for queue in found.queue_datas}


def shown_group(name_server: str, topic: str) -> tuple[dict[int, str], int] | None:
    """The addresses by id, and what may be done, of the one group that has a topic; None if none has."""
    found = find_route(name_server, topic)
    if found is None:
        return None
    (group,), (queues,) = found.broker_datas, found.queue_datas
    return group.broker_addrs, queues.perm


def find_route(name_server: str, topic: str) -> TopicRouteData | None:
    with Wire(name_server) as wire:
        answer = wire.ask(Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=topic)))
    return decode_java_json(answer.body, TopicRouteData) if answer.code == ResponseCode.SUCCESS else None
