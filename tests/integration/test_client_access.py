"""Transactions, requests and replies with a broker that checks signatures and permissions."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tanist.client import (
    Consumer,
    Credentials,
    Message,
    NoPermission,
    Outcome,
    Producer,
    ReceivedMessage,
    SendFailed,
    Start,
)
from tanist.testing import EmbeddedBroker
from tests.support.acl import KEY, PLAIN_ACL, SECRET

TOPIC, DENIED = "Both", "Denied"
CREDENTIALS = Credentials(KEY, SECRET)


async def commit_all(_: ReceivedMessage) -> Outcome:
    return Outcome.COMMIT


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "plain_acl.yml"
    path.write_text(PLAIN_ACL)
    return path


@asynccontextmanager
async def serving(rules: Path) -> AsyncGenerator[dict[str, Any]]:
    """A broker that checks, and what its clients are to be given."""
    settings = {
        "aclEnable": "true",
        "aclConfigPath": str(rules),
        "transactionTimeOut": "200",
        "transactionCheckInterval": "200",
    }
    async with EmbeddedBroker(topics={TOPIC: 1, DENIED: 1}, settings=settings) as broker:
        yield {"namesrv": broker.namesrv, "credentials": CREDENTIALS}


def test_signed_transactions_requests_and_replies_pass(rules: Path) -> None:
    async def scenario() -> None:
        async with (
            serving(rules) as given,
            Producer(group="orders", **given, on_check=commit_all) as producer,
            Consumer(group="billing", **given, topics={TOPIC: "*"}, start=Start.FIRST) as consumer,
            asyncio.timeout(60),
        ):
            async with producer.transaction(Message(TOPIC, b"paid")):
                pass
            asking = asyncio.create_task(producer.request(Message(TOPIC, b"o-17"), timeout_s=60))
            async for message in consumer:
                if message.body == b"o-17":
                    await producer.reply(message, b"re: o-17")
                    break
                assert message.body == b"paid"
            assert (await asking).body == b"re: o-17"

    asyncio.run(scenario())


def test_what_an_account_may_not_send_it_may_not_send_in_a_transaction(rules: Path) -> None:
    async def scenario() -> None:
        async with (
            serving(rules) as given,
            Producer(group="orders", **given, on_check=commit_all) as producer,
        ):
            with pytest.raises(SendFailed, match="Denied"):
                async with producer.transaction(Message(DENIED, b"paid")):
                    pytest.fail("the block ran")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"credentials": None}, "no access key"),
        ({"credentials": Credentials(KEY, "another-secret")}, "wrong signature"),
        ({"topics": {DENIED: "*"}}, "topic Denied"),
        ({"group": "DeniedGroup"}, "group DeniedGroup"),
    ],
)
def test_a_consumer_that_no_broker_lets_in_is_told_when_it_opens(
    rules: Path, changes: dict[str, Any], reason: str
) -> None:
    async def scenario() -> None:
        async with serving(rules) as given:
            arguments: dict[str, Any] = {"group": "billing", "topics": {TOPIC: "*"}, **given, **changes}
            with pytest.raises(NoPermission, match=reason):
                async with Consumer(**arguments):
                    pytest.fail("the block ran")

    asyncio.run(scenario())
