from pathlib import Path

import pytest

from tanist.broker.handlers import transactions as handlers
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tests.support.broker_tables import Asker
from tests.support.transacting import GROUP, Transacting, run


def ending(transactions: Transacting, outcome: int, **others: str) -> Command:
    half = transactions.prepare(b"order")
    ext = {
        "producerGroup": GROUP,
        "tranStateTableOffset": str(half.queue_offset),
        "commitLogOffset": str(half.log_offset),
        "commitOrRollback": str(outcome),
        "fromTransactionCheck": "false",
        "msgId": "id-1",
        **others,
    }
    answer = Asker(handlers.routes(transactions.state, transactions.keeper)).ask(
        RequestCode.END_TRANSACTION, ext=ext
    )
    transactions.state.store.dispatch()
    return answer


@pytest.mark.parametrize(("outcome", "seen"), [(8, [b"order"]), (12, []), (0, [])])
def test_an_end_is_answered_and_done(tmp_path: Path, outcome: int, seen: list[bytes]) -> None:
    async def scenario(transactions: Transacting) -> None:
        assert ending(transactions, outcome).code == ResponseCode.SUCCESS
        assert transactions.visible() == seen

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("outcome", "others"),
    [(4, {}), (-1, {}), (8, {"producerGroup": "others"}), (8, {"commitLogOffset": "999999"})],
)
def test_an_end_that_makes_no_sense_is_refused(tmp_path: Path, outcome: int, others: dict[str, str]) -> None:
    async def scenario(transactions: Transacting) -> None:
        assert ending(transactions, outcome, **others).code == ResponseCode.SYSTEM_ERROR
        assert transactions.visible() == []

    run(tmp_path, scenario)
