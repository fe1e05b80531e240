"""What an operator makes of TBW102 holds for topics that producers make afterwards, here and at RocketMQ."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tanist.model.route import TopicRouteData
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.headers.nameserver import GetRouteRequest
from tests.support import partners
from tests.support.rocketmq.cluster import RocketMQ, mqadmin_each
from tests.support.rocketmq.scenario import StepFailed
from tests.support.rocketmq.stock_client import StockClients
from tests.support.site import numbered, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

pytestmark = [pytest.mark.partner("java", "maven"), pytest.mark.takes(30)]

CLUSTER = "tanist-tests"
TEMPLATE = "TBW102"


@dataclass(frozen=True)
class Made:
    """A topic as its route tells it."""

    perm: int
    read_queues: int
    write_queues: int


class Scene:
    """A broker of its own, whose template ``mqadmin`` changes and whose topics a producer makes."""

    def __init__(self, name_server: str, address: str, home: Path, clients: StockClients) -> None:
        self.name_server = name_server
        self.address = address
        self._home = home
        self._clients = clients

    def run(self, *commands: tuple[str, ...]) -> list[str]:
        return mqadmin_each(self.name_server, *commands, home=self._home)

    def change(self, *options: str) -> None:
        """Change the template, and wait until producers are told so."""
        before = self.route(TEMPLATE)
        (printed,) = self.run(("updateTopic", "-b", self.address, "-t", TEMPLATE, *options))
        assert "success" in printed
        wait_until(lambda: self.route(TEMPLATE) != before)

    def route(self, topic: str) -> Made | None:
        request = Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=topic))
        with Wire(self.name_server) as wire:
            answer = wire.ask(request)
        if answer.code != ResponseCode.SUCCESS:
            return None
        (queues,) = decode_java_json(answer.body, TopicRouteData).queue_datas
        return Made(queues.perm, queues.read_queue_count, queues.write_queue_count)

    def send(self, topic: str, *, asked: int) -> Made:
        with self._clients.producer(self.name_server, topicQueues=asked) as producer:
            producer.send(topic, numbered(1))
        wait_until(lambda: self.route(topic) is not None)
        made = self.route(topic)
        assert made is not None
        return made

    def is_refused(self, topic: str) -> bool:
        with self._clients.producer(self.name_server, retries=0) as producer:
            try:
                producer.send(topic, numbered(1))
            except StepFailed:
                return True
        return False


@pytest.fixture(params=["tanist", "rocketmq"])
def scene(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    own_names: NameServerProcess,
    started_clients: Callable[[str], StockClients],
) -> Iterator[Scene]:
    try:
        clients = started_clients("5.3.3")
        if request.param == "tanist":
            with BrokerProcess(tmp_path / "broker", own_names.address) as broker:
                yield Scene(own_names.address, broker.address, tmp_path, clients)
            return
        with RocketMQ(tmp_path / "rocketmq", name_server=own_names.address) as rocketmq:
            real = rocketmq.start_broker()
            yield Scene(own_names.address, real.address, tmp_path, clients)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)


def test_new_topics_are_as_an_operator_wants_them(scene: Scene) -> None:
    wait_until(lambda: scene.route(TEMPLATE) is not None)
    before = scene.route(TEMPLATE)
    assert before == Made(perm=7, read_queues=8, write_queues=8)
    asked = ("updateTopic", "-b", scene.address, "-t", TEMPLATE, "-r", "3", "-w", "2", "-p", "7")
    allow = ("updateBrokerConfig", "-b", scene.address, "-k", "validateSystemTopicWhenUpdateTopic", "-v")
    refused, allowed = scene.run(asked, (*allow, "false"))
    assert "success" not in refused
    assert "success" in allowed
    assert scene.route(TEMPLATE) == before

    # The fewer of what the producer asks for and what the template has to write to, and its permission.
    scene.change("-r", "3", "-w", "5", "-p", "7")
    assert scene.send("Two", asked=2) == Made(perm=6, read_queues=2, write_queues=2)
    assert scene.send("Five", asked=16) == Made(perm=6, read_queues=5, write_queues=5)
    scene.change("-r", "4", "-w", "4", "-p", "3")
    assert scene.send("WriteOnly", asked=16) == Made(perm=2, read_queues=4, write_queues=4)
    assert scene.send("Two", asked=16) == Made(perm=6, read_queues=2, write_queues=2)
    # Without the bit that is to be inherited, which mqadmin leaves out unless told, nothing is made.
    scene.change("-r", "4", "-w", "4")
    assert scene.route(TEMPLATE) == Made(perm=6, read_queues=4, write_queues=4)
    assert scene.is_refused("None")
    assert scene.route("None") is None

    (deleted,) = scene.run(("deleteTopic", "-c", CLUSTER, "-t", TEMPLATE))
    assert "success" not in deleted
    assert scene.route(TEMPLATE) is not None
