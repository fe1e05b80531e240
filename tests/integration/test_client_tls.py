"""Producers and consumers with servers that speak nothing but TLS."""

import asyncio

import pytest

from tanist.client import Consumer, Message, NoRoute, Producer, Start, TlsSettings
from tanist.testing import EmbeddedBroker
from tests.support.tls import ENFORCING, certificate

TOPIC = "OrderTopic"
CLIENT = TlsSettings(
    tls_enable=True, tls_client_auth_server=True, tls_client_trust_cert_path=certificate("ca")
)


def test_messages_are_sent_and_read_over_tls() -> None:
    async def scenario() -> None:
        async with (
            EmbeddedBroker(topics={TOPIC: 2}, settings=ENFORCING) as broker,
            Producer(group="orders", namesrv=broker.namesrv, tls=CLIENT, timeout_s=20) as producer,
        ):
            for number in range(20):
                await producer.send(Message(TOPIC, b"%d" % number))
            topics = {TOPIC: "*"}
            async with Consumer(
                group="billing", namesrv=broker.namesrv, topics=topics, start=Start.FIRST, tls=CLIENT
            ) as consumer:
                messages = aiter(consumer)
                async with asyncio.timeout(30):
                    came = {(await anext(messages)).body for _ in range(20)}
        assert came == {b"%d" % number for number in range(20)}

    asyncio.run(scenario())


def test_a_client_without_tls_is_told_that_no_server_answers() -> None:
    async def scenario() -> None:
        async with (
            EmbeddedBroker(topics={TOPIC: 2}, settings=ENFORCING) as broker,
            Producer(group="orders", namesrv=broker.namesrv) as producer,
        ):
            with pytest.raises(NoRoute, match="no name server answers"):
                await producer.send(Message(TOPIC, b"plain"))

    asyncio.run(scenario())
