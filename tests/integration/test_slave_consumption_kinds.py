"""Retries, order, delays, transactions and broadcasting while a slave is read in place of its master."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tanist.broker.queue_look import queue_bounds
from tanist.client import (
    CommitInDoubt,
    Consumer,
    Message,
    Outcome,
    Producer,
    ReceivedMessage,
    RetryLater,
    Start,
)
from tanist.client.consuming import handling
from tanist.model.topics import RETRY_PREFIX
from tests.support.consuming import (
    QUICK_RETRIES,
    TOPIC,
    Handled,
    Turnstile,
    are_shared,
    in_loop,
    running,
    send,
    until,
)
from tests.support.read_pair import ReadPair

GROUP = "billing"
PREFETCH = 4


def member(pair: ReadPair, name: str = "one", **arguments: Any) -> Consumer:
    # Little is fetched ahead, so that what a test means to be read at a broker is read there.
    given: dict[str, Any] = {"group": GROUP, "topics": {TOPIC: "*"}, "prefetch_count": PREFETCH, **arguments}
    return Consumer(namesrv=pair.namesrv, instance=name, **given)


class Troubled:
    """Fails with some messages; with one until it comes as a retry, and with one for ever."""

    def __init__(self, *, retried: bytes, given_up: bytes) -> None:
        self.tries: Counter[bytes] = Counter()
        self.handled: list[bytes] = []
        self._retried = retried
        self._given_up = given_up

    async def __call__(self, message: ReceivedMessage) -> None:
        body = message.body
        self.tries[body] += 1
        if body == self._given_up:
            raise RetryLater(delay_level=-1)
        if body == self._retried and not message.queue.topic.startswith(RETRY_PREFIX):
            raise RetryLater
        self.handled.append(body)


def test_what_fails_at_the_slave_is_tried_there_again_and_goes_back_to_the_master_when_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics={TOPIC: 1}, settings=QUICK_RETRIES) as pair:
            handler = Troubled(retried=b"3", given_up=b"4")
            # Of what is fetched ahead, half is for the topic of the retries.
            async with member(pair, prefetch_count=8) as consumer:
                sent = await send(pair.namesrv, 8)
                await pair.in_step()
                await pair.switch()
                log_end = pair.slave.state.store.log.log_end
                async with running(consumer, handler):
                    # Both are tried again here; all others are handled meanwhile.
                    await until(lambda: min(handler.tries[b"3"], handler.tries[b"4"]) >= 2)
                    await until(lambda: len(handler.handled) == 6)
                    await consumer.commit()
                    assert pair.slave.offsets(GROUP, TOPIC) == {0: 3}
                    assert pair.slave.state.store.log.log_end == log_end
                    await pair.hand_back()
                    await until(lambda: b"3" in handler.handled)
                    store = pair.master.state.store
                    await until(lambda: queue_bounds(store, f"%DLQ%{GROUP}", 0)[1] == 1)
                    await until(lambda: pair.master.offsets(GROUP, TOPIC) == {0: 8})
            assert Counter(handler.handled) == Counter(set(sent) - {b"4"})
            assert queue_bounds(store, f"%DLQ%{GROUP}", 0) == (0, 1)

    monkeypatch.setattr(handling, "NOT_SENT_BACK_S", 0.1)
    in_loop(scenario())


class InOrder:
    """Handlers of several members, which see that nobody works on a queue while another one does."""

    def __init__(self) -> None:
        self.by_key: defaultdict[str, list[int]] = defaultdict(list)
        self.meetings: list[str] = []
        self.count = 0
        self._at_work: dict[int, str] = {}
        self._gate = Turnstile()

    def allow(self, count: int) -> None:
        self._gate.allow(count)

    def of(self, name: str) -> Callable[[ReceivedMessage], Any]:
        async def handle(message: ReceivedMessage) -> None:
            queue_id = message.queue.queue_id
            if (other := self._at_work.get(queue_id)) is not None:
                self.meetings.append(f"{name} meets {other} in queue {queue_id}")
            self._at_work[queue_id] = name
            try:
                await self._gate(message)
            finally:
                del self._at_work[queue_id]
            assert message.sharding_key is not None
            self.by_key[message.sharding_key].append(int(message.body))
            self.count += 1

        return handle


def test_in_order_a_queue_has_one_member_and_each_key_its_order_over_both_changes(tmp_path: Path) -> None:
    keys, per_key = 6, 10

    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics={TOPIC: 4}) as pair:
            handled = InOrder()
            async with (
                member(pair, "one", orderly=True) as one,
                member(pair, "two", orderly=True) as two,
                running(one, handled.of("one"), concurrency=4),
                running(two, handled.of("two"), concurrency=4),
            ):
                await until(lambda: are_shared([one, two], 4))
                async with Producer(group="senders", namesrv=pair.namesrv) as producer:
                    for number in range(per_key):
                        for key in range(keys):
                            await producer.send(
                                Message(TOPIC, b"%d" % number, sharding_key=f"key {key}"), timeout_s=30
                            )
                handled.allow(12)
                await until(lambda: handled.count == 12)
                await pair.in_step()
                await pair.switch()
                handled.allow(24)
                await until(lambda: handled.count == 36)
                assert pair.slave.has_served(GROUP, TOPIC)
                await pair.hand_back()
                handled.allow(1000)
                await until(lambda: handled.count >= keys * per_key)
                await one.commit()
                await two.commit()
            assert handled.meetings == []
            assert handled.by_key == {f"key {key}": list(range(per_key)) for key in range(keys)}

    in_loop(scenario())


QUICK_CHECKS = {
    "transactionTimeOut": "200",
    "transactionCheckInterval": "200",
    "transactionOpBatchInterval": "50",
}


def test_what_becomes_due_while_the_master_is_gone_comes_once_when_it_is_back(tmp_path: Path) -> None:
    count = 5

    async def scenario() -> None:
        settings = {"messageDelayLevel": "2s 1s"}
        async with ReadPair.serving(tmp_path, topics={TOPIC: 2}, settings=settings) as pair:
            handled = Handled()
            async with (
                member(pair) as consumer,
                Producer(group="senders", namesrv=pair.namesrv) as producer,
                running(consumer, handled),
            ):
                due_s = time.time() + 2
                for number in range(count):
                    await producer.send(Message(TOPIC, b"level %d" % number, delay_level=1))
                    await producer.send(Message(TOPIC, b"timer %d" % number, delay_s=2))
                await pair.in_step()
                await pair.master.crash()
                await pair.slave.has("READ")
                log_end = pair.slave.state.store.log.log_end
                await until(lambda: time.time() > due_s + 0.5)
                # Nothing is written here, so nothing that was not due before can have come.
                assert pair.slave.state.store.log.log_end == log_end
                await pair.hand_back()
                await until(lambda: len(handled.bodies) >= 2 * count)
                # What comes after all others shows that nothing else was still to come.
                await producer.send(Message(TOPIC, b"last level", delay_level=2))
                await producer.send(Message(TOPIC, b"last timer", delay_s=1))
                await until(lambda: {b"last level", b"last timer"} <= set(handled.bodies))
            expected = [b"%s %d" % (kind, number) for kind in (b"level", b"timer") for number in range(count)]
            assert Counter(handled.bodies) == Counter([*expected, b"last level", b"last timer"])

    in_loop(scenario())


async def transact_while_the_master_goes(pair: ReadPair, producer: Producer) -> None:
    """Begin where the master is, and end where its slave is read: nobody can confirm that."""
    async with producer.transaction(Message(TOPIC, b"ends meanwhile")):
        await pair.in_step()
        await pair.master.crash()
        await pair.slave.has("READ")


def test_transactions_that_end_while_the_master_is_gone_or_after_are_delivered_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics={TOPIC: 1}, settings=QUICK_CHECKS) as pair:
            handled = Handled()

            async def on_check(_message: ReceivedMessage) -> Outcome:
                return Outcome.COMMIT

            def transacting(timeout_s: float = 30) -> Producer:
                return Producer(group="senders", namesrv=pair.namesrv, on_check=on_check, timeout_s=timeout_s)

            async with member(pair) as consumer, transacting() as producer, running(consumer, handled):
                async with producer.transaction(Message(TOPIC, b"ends after")):
                    async with transacting(timeout_s=1) as hasty:
                        with pytest.raises(CommitInDoubt):
                            await transact_while_the_master_goes(pair, hasty)
                    await pair.hand_back()
                # Whoever is of its group now is asked what became of the other one.
                async with transacting() as later:
                    await until(lambda: len(handled.bodies) >= 2)
                    async with later.transaction(Message(TOPIC, b"last")):
                        pass
                    await until(lambda: b"last" in handled.bodies)
            expected = [b"ends meanwhile", b"ends after", b"last"]
            assert Counter(handled.bodies) == Counter(expected)

    in_loop(scenario())


def test_broadcasting_members_each_get_every_message_once_over_both_changes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path / "pair", topics={TOPIC: 2}) as pair:
            one_got, two_got = Turnstile(), Turnstile()
            given = {"broadcasting": True, "start": Start.FIRST, "offsets_dir": tmp_path / "offsets"}
            sent = await send(pair.namesrv, 20)
            async with (
                member(pair, "one", **given) as one,
                member(pair, "two", **given) as two,
                running(one, one_got),
                running(two, two_got),
            ):
                for got in (one_got, two_got):
                    got.allow(4)
                    await until(lambda got=got: len(got.bodies) == 4)
                await pair.in_step()
                await pair.switch()
                for got in (one_got, two_got):
                    got.allow(8)
                    await until(lambda got=got: len(got.bodies) == 12)
                assert pair.slave.has_served(GROUP, TOPIC)
                # Nobody has told the brokers of an offset: each member keeps its own.
                assert pair.slave.offsets(GROUP, TOPIC) == {}
                await pair.hand_back()
                sent += await send(pair.namesrv, 4, start=20)
                for got in (one_got, two_got):
                    got.allow(100)
                    await until(lambda got=got: len(got.bodies) >= 24)
            assert Counter(one_got.bodies) == Counter(two_got.bodies) == Counter(sent)

    in_loop(scenario())
