from pathlib import Path

import pytest

from tanist.client.tracing.trace_format import AfterTrace, ConsumeResult, encode_trace
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.slave_consume import LedgerEntry, LedgerEvent
from tanist.spark.errors import SparkError
from tanist.spark.ledger.accounts import Explained, at_most, read_ledger_file
from tanist.spark.ledger.deliveries import acknowledged


def _entry(event: LedgerEvent, *, at_ms: int = 50, term: int = 1, count: int | None = 3) -> LedgerEntry:
    return LedgerEntry(
        at_ms=at_ms,
        event=event,
        group="broker-a",
        term=term,
        broker="b",
        reason="why billing",
        duplicates={} if count is None else {"billing": count},
        duplicates_at_most=count,
    )


def test_both_ends_of_a_hand_back_count_once() -> None:
    entries = [
        _entry(LedgerEvent.SWITCH),
        _entry(LedgerEvent.HAND_BACK, count=2),
        _entry(LedgerEvent.HAND_BACK, count=0),
        _entry(LedgerEvent.SWITCH, term=2, count=10),
        _entry(LedgerEvent.GAVE_UP, count=99),
    ]
    assert at_most(entries, "billing") == 15
    assert at_most(entries, "other") == 0
    assert at_most([_entry(LedgerEvent.SWITCH, count=None)], "billing") is None


def test_a_change_of_reader_between_two_deliveries_explains_them() -> None:
    explained = Explained([_entry(LedgerEvent.SWITCH, at_ms=50), _entry(LedgerEvent.GAVE_UP, at_ms=70)])
    assert explained.between(40, 60) == "SWITCH of broker-a in term 1: why billing"
    assert explained.between(51, 80) is None
    assert explained.between(10, 49) is None
    assert explained.between(None, None) is None


def test_a_ledger_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "slaveConsumeLedger.jsonl"
    path.write_bytes(encode_body(_entry(LedgerEvent.SWITCH)) + b"\ndamaged\n")
    assert [entry.event for entry in read_ledger_file(path)] == [LedgerEvent.SWITCH]
    path.write_bytes(b"damaged\n")
    with pytest.raises(SparkError, match="has no entry of a ledger"):
        read_ledger_file(path)


def test_traces_tell_what_was_consumed_well() -> None:
    traces = [
        AfterTrace(
            timestamp_ms=5,
            group="billing",
            message_id=name,
            request_id="r",
            cost_ms=1,
            is_ok=is_ok,
            result=ConsumeResult.SUCCESS,
        )
        for name, is_ok in (("A", True), ("B", False))
    ]
    body = "".join(map(encode_trace, traces)).encode()
    assert [*acknowledged([body, b"SubAfter\x01nonsense\x02"])] == [("billing", "A", 5)]
