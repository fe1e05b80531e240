"""Whatever happens in whatever order, kills included: what was committed comes once, and nothing else."""

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from tanist.model.message import Appended
from tanist.model.topics import CHECK_MAX_TIME_TOPIC
from tanist.protocol.headers.transaction import CheckTransactionStateRequest
from tests.support.broker_tables import SETTINGS
from tests.support.fake_connection import FakeConnection
from tests.support.transacting import COMMIT, ROLLBACK, Transacting, asked, run

STEPS = 300
QUICK = msgspec.structs.replace(SETTINGS, transaction_check_max=4, transaction_op_msg_max_size=24)
EVENTS = {"prepare": 6, "commit": 4, "roll back": 2, "answer": 5, "pass": 6, "kill": 1, "stop": 1, "save": 2}


@dataclass
class Story:
    """One run, and what must have come of it."""

    transactions: Transacting
    chance: random.Random
    producer: FakeConnection
    halves: dict[str, Appended] = field(default_factory=dict[str, Appended])
    questions: list[CheckTransactionStateRequest] = field(default_factory=list[CheckTransactionStateRequest])
    committed: set[str] = field(default_factory=set[str])
    rolled_back: set[str] = field(default_factory=set[str])

    def tell(self, event: str) -> None:
        match event:
            case "prepare":
                name = f"order-{len(self.halves)}"
                self.halves[name] = self.transactions.prepare(name.encode(), UNIQ_KEY=name)
            case "commit" | "roll back" if self.halves:
                name = self.chance.choice([*self.halves])
                self._end(name, self.halves[name], is_commit=event == "commit")
            case "answer" if self.questions:
                question = self.chance.choice(self.questions)
                assert question.msg_id is not None
                self._end(question.msg_id, question, is_commit=self.chance.random() < 0.7)
            case "pass":
                self._pass(self.chance.choice([100, 1_000, 5_000, 20_000]))
            case "kill":
                self.transactions.restart_after_kill()
            case "stop":
                self.transactions.keeper.close()
                self.transactions.state.offsets.save()
                self.transactions.restart_after_kill()
            case "save":
                self.transactions.state.store.flush()
                self.transactions.turn()
                self.transactions.state.offsets.save()
            case _:
                pass

    def finish(self) -> None:
        """Let a producer commit all that is still open."""
        for _ in range(40):
            self._pass(10_000)
            for question in self.questions:
                assert question.msg_id is not None
                self._end(question.msg_id, question, is_commit=True)
            self.questions.clear()

    def _end(self, name: str, half: Appended | CheckTransactionStateRequest, *, is_commit: bool) -> None:
        # A producer does not change its mind.
        if name in (self.rolled_back if is_commit else self.committed):
            return
        if self.transactions.end(half, COMMIT if is_commit else ROLLBACK) == 0:
            (self.committed if is_commit else self.rolled_back).add(name)

    def _pass(self, elapsed_ms: int) -> None:
        self.transactions.pass_ms(elapsed_ms)
        while self.transactions.turn() == 0:
            pass
        self.questions += asked(self.producer)


@pytest.mark.parametrize("seed", range(12))
def test_each_transaction_ends_once_whatever_happens(tmp_path: Path, seed: int) -> None:
    async def scenario(transactions: Transacting) -> None:
        story = Story(transactions, random.Random(seed), transactions.connect())
        for event in story.chance.choices([*EVENTS], [*EVENTS.values()], k=STEPS):
            story.tell(event)
            seen = Counter(body.decode() for body in transactions.visible())
            assert seen == Counter(story.committed), event
        story.finish()
        seen = Counter(body.decode() for body in transactions.visible())
        assert seen == Counter(story.committed)
        given_up = {body.decode() for body in transactions.visible(CHECK_MAX_TIME_TOPIC, 0)}
        assert story.committed | story.rolled_back | given_up == story.halves.keys()
        assert not story.committed & given_up
        transactions.keeper.close()
        low, high = transactions.keeper._halves.bounds
        assert low < high
        assert transactions.progress() == (high, transactions.keeper._halves.note_bounds[1])

    run(tmp_path, scenario, settings=QUICK)
