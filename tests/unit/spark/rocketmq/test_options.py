"""The options of ``rocketmq``: what contradicts itself is refused before anybody is asked."""

import pickle

import pytest

from tanist.client import Credentials
from tanist.model.route import MessageQueue
from tanist.model.subscription import SQL92
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.offsets import Bound
from tanist.spark.rocketmq.options import RocketMQOptions, for_batch, for_stream, read_options
from tests.support.tls import certificate


def read(**given: str) -> RocketMQOptions:
    return read_options({"namesrv": "127.0.0.1:9876"} | given)


def test_what_is_not_said_has_a_default() -> None:
    found = read(subscribe="A,B")
    batch, stream = for_batch(found), for_stream(found)

    assert (batch.start, batch.end) == (
        Bound("startingOffsets", "earliest"),
        Bound("endingOffsets", "latest"),
    )
    assert (stream.start, stream.end) == (Bound("startingOffsets", "latest"), None)
    assert (found.subscribe, found.max_offsets) == (("A", "B"), None)
    assert (found.fails_on_loss, found.read_from, found.expression) == (True, "master", "*")


def test_queues_can_be_assigned_one_by_one() -> None:
    found = read(assign='{"T": {"a": [0, 2]}}')

    assert found.assign == {MessageQueue(topic="T", broker_name="a", queue_id=number) for number in (0, 2)}


def test_a_filter_is_of_tags_or_of_sql() -> None:
    assert read(subscribe="T", tags="a || b").tags == {"a", "b"}
    assert read(subscribe="T", sqlFilter="amount > 5").expression_type == SQL92


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "one of subscribe, subscribePattern, assign says what to read, and none is given"),
        ({"subscribe": "A", "assign": "{}"}, "and subscribe and assign is given"),
        ({"subscribe": "A", "namesrv": "nowhere"}, "option namesrv='nowhere' is not allowed; use host:port"),
        ({"subscribePattern": "["}, "use a regular expression"),
        ({"assign": '{"T": 0}'}, "use JSON as"),
        (
            {"subscribe": "A", "startingOffsets": "earliest", "startingTimestamp": "5"},
            "contradict each other",
        ),
        (
            {"subscribe": "A", "startingTimestamp": "6", "endingTimestamp": "5"},
            "startingTimestamp=6 is after endingTimestamp=5",
        ),
        ({"subscribe": "A", "endingOffsets": "earliest"}, "use latest or JSON"),
        ({"subscribe": "A", "endingTimestamp": "-1"}, "use a whole number of 0 or more"),
        ({"subscribe": "A", "tags": "a", "sqlFilter": "b > 1"}, "contradict each other"),
        ({"subscribe": "A", "tags": "||"}, r"use tags separated by \|\|"),
        ({"subscribe": "A", "readFrom": "anyone"}, "use master or slave or any"),
        ({"subscribe": "A", "startingOffset": "latest"}, "did you mean startingOffsets"),
        ({"subscribe": "A", "accessKey": "app"}, "accessKey and secretKey are one pair: give both"),
        ({"subscribe": "A", "tlsEnable": "false", "tlsClientCertPath": "c.pem"}, "says to use no TLS"),
        ({"subscribe": "A", "tlsClientTrustCertPath": "/none.pem"}, "tlsClientTrustCertPath.*/none.pem"),
        ({"subscribe": "A", "commitOffsets": "true"}, "give the option group too"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(given: dict[str, str], said: str) -> None:
    with pytest.raises(SparkError, match=said):
        read(**given)


def test_keys_and_certificates_are_taken_along_and_no_secret_is_shown() -> None:
    found = read(subscribe="A", accessKey="app", secretKey="hidden", tlsClientTrustCertPath=certificate("ca"))

    settings = found.client_settings
    assert settings.credentials == Credentials("app", "hidden")
    assert (settings.tls.tls_enable, settings.tls.tls_client_auth_server) == (True, True)
    assert "hidden" not in repr(found)
    # Spark hands it to workers so.
    taken_along = pickle.loads(pickle.dumps(found)).client_settings
    assert (taken_along.credentials, taken_along.tls) == (settings.credentials, settings.tls)


def test_a_queue_in_pieces_can_not_be_committed() -> None:
    with pytest.raises(SparkError, match="commitOffsets and minPartitions contradict each other"):
        for_batch(read(subscribe="A", group="g", commitOffsets="true", minPartitions="9"))


def test_a_name_server_must_be_named() -> None:
    with pytest.raises(SparkError, match="option namesrv=None is not allowed; use host:port"):
        read_options({"subscribe": "A"})


def test_what_is_for_a_stream_is_not_for_a_batch_and_the_other_way_round() -> None:
    with pytest.raises(SparkError, match="a batch has no triggers"):
        for_batch(read(subscribe="A", maxOffsetsPerTrigger="5"))
    with pytest.raises(SparkError, match="endingTimestamp is for batch reads: a stream has no end"):
        for_stream(read(subscribe="A", endingTimestamp="5"))
