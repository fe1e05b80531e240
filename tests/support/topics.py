"""Topics that a test has brokers make, and where clients find them."""

from tanist.model.route import TopicRouteData
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.protocol.headers.topics import UpdateTopicRequest
from tests.support.wire import Wire


def create_topic(address: str, topic: str) -> None:
    """Have a broker make a topic of four queues."""
    header = UpdateTopicRequest(
        topic=topic,
        default_topic="TBW102",
        read_queue_count=4,
        write_queue_count=4,
        perm=6,
        topic_filter_type="SINGLE_TAG",
    )
    with Wire(address) as wire:
        answer = wire.ask(Command.request(RequestCode.UPDATE_AND_CREATE_TOPIC, header))
    assert answer.code == ResponseCode.SUCCESS


def route_brokers(name_server: str, topic: str) -> set[str]:
    """The names of the brokers that clients are told to find a topic at."""
    with Wire(name_server) as wire:
        answer = wire.ask(Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=topic)))
    if answer.code != ResponseCode.SUCCESS:
        return set()
    return {queue.broker_name for queue in decode_java_json(answer.body, TopicRouteData).queue_datas}
