"""What an embedded broker is told is checked when it is made."""

from collections.abc import Iterable
from typing import Any

import pytest

from tanist.errors import ConfigError
from tanist.testing import EmbeddedBroker
from tests.support.tls import certificate, key


def refusal(**arguments: Any) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        EmbeddedBroker(**arguments)
    assert str(refused.value).startswith("EmbeddedBroker: ")
    return refused.value


@pytest.mark.parametrize("port", [-1, 2, 65535])
def test_a_port_that_can_not_be_is_refused(port: int) -> None:
    assert (refusal(port=port).key, refusal(port=port).value) == ("port", port)


@pytest.mark.parametrize("topics", [[""], ["a topic"], ["x" * 128], {"a.b": 4}, [b"Orders"]])
def test_a_name_that_no_topic_may_have_is_refused(topics: Iterable[object]) -> None:
    error = refusal(topics=topics)
    assert (error.key, error.value) == ("topics", next(iter(topics)))


@pytest.mark.parametrize("queue_count", [0, -1, 1 << 20, "4", True])
def test_a_topic_with_a_number_of_queues_that_can_not_be_is_refused(queue_count: object) -> None:
    error = refusal(topics={"Orders": queue_count})
    assert (error.key, error.value) == ("topics", {"Orders": queue_count})


def test_a_slave_is_given_no_topics_for_they_come_from_its_master() -> None:
    settings = {"brokerRole": "SLAVE", "brokerId": "1"}
    assert refusal(topics=["Orders"], settings=settings).key == "topics"
    EmbeddedBroker(settings=settings)


def test_one_name_is_not_taken_for_a_list_of_letters() -> None:
    assert "['Orders']" in refusal(topics="Orders").allowed


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("topics", 4),
        ("topics", None),
        ("settings", "brokerName=b"),
        ("settings", []),
        ("store", 5),
        ("store", ""),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(argument: str, value: object) -> None:
    assert (refusal(**{argument: value}).key, refusal(**{argument: value}).value) == (argument, value)


def test_a_wrong_setting_is_refused_as_in_a_config_file() -> None:
    assert refusal(settings={"flushDiskType": "SOON"}).key == "flushDiskType"


@pytest.mark.parametrize(("value", "text"), [(True, "'true'"), (7, "'7'")])
def test_a_setting_that_is_no_text_is_refused_with_the_text_to_use(value: object, text: str) -> None:
    error = refusal(settings={"autoCreateTopicEnable": value})
    assert error.key == "autoCreateTopicEnable"
    assert text in error.allowed


@pytest.mark.parametrize("key", ["listenPort", "storePathRootDir", "namesrvAddr", "bindAddress", "brokerIP1"])
def test_what_it_decides_itself_can_not_be_set(key: str) -> None:
    assert refusal(settings={key: "127.0.0.1"}).key == key


def test_tls_that_would_keep_the_broker_from_its_own_name_server_is_refused() -> None:
    files = {"tlsServerCertPath": certificate("server"), "tlsServerKeyPath": key("server")}
    error = refusal(settings={"tlsMode": "enforcing", **files})
    assert error.key == "tlsMode"
    assert "tlsEnable=true" in error.allowed
