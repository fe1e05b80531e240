"""Request and reply between stock clients of both lines: the reply comes back to who asked."""

import pytest

from tests.support.rocketmq.scenario import StepFailed
from tests.support.site import Site

pytestmark = pytest.mark.partner("java", "maven")

SYSTEM_ERROR = 1
NO_REPLY = "RequestTimeoutException"


def test_a_request_gets_its_reply(site: Site) -> None:
    topic = site.topic("t")
    with site.clients.producer(site.name_server) as producer:
        # The client compresses what is this large, and only the client that asked can tell.
        requests = [b"number-%d" % n for n in range(10)] + [b"squeeze me " * 4096]
        ask_in_vain(site, topic)
        with site.clients.replier(site.name_server, site.topic("g"), topic, is_prompt=True):
            for body in requests:
                reply = producer.request(topic, body)
                assert reply.body == b"re: " + body
                assert "PUSH_REPLY_TIME" in reply.properties


def test_a_reply_to_a_client_that_has_gone_fails_and_the_next_one_does_not(site: Site) -> None:
    topic = site.topic("t")
    ask_in_vain(site, topic)
    with (
        site.clients.replier(site.name_server, site.topic("g"), topic, is_prompt=False) as replier,
        site.clients.producer(site.name_server) as producer,
    ):
        with pytest.raises(StepFailed) as gone:
            replier.reply()
        with pytest.raises(StepFailed) as late:
            producer.request(topic, b"patient", timeout_ms=3000)
        assert replier.reply() == "SEND_OK"
    assert gone.value.code == SYSTEM_ERROR
    assert late.value.error == NO_REPLY


def ask_in_vain(site: Site, topic: str) -> None:
    """Create the topic with a request whose sender is gone before anybody replies."""
    with (
        site.clients.producer(site.name_server, topicQueues=1) as producer,
        pytest.raises(StepFailed) as nobody,
    ):
        producer.request(topic, b"anybody there?", timeout_ms=3000)
    assert nobody.value.error == NO_REPLY
