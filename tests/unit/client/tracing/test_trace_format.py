import pytest

from tanist.client.tracing.trace_format import (
    AfterTrace,
    BeforeTrace,
    ConsumeResult,
    EndState,
    EndTrace,
    SendTrace,
    Trace,
    TraceKind,
    decode_traces,
    encode_trace,
)
from tanist.errors import RemoteProtocolError
from tests.support import golden

CASES = golden.load("traces")
MESSAGE_ID = "7F0000010001070DEA4E000000000000"
REQUEST_ID = "7F0000010001070DEA4E000000000001"
BORN_MS = 1_700_000_000_000


def send(*, tags: str | None, keys: str | None, kind: TraceKind, is_ok: bool) -> SendTrace:
    return SendTrace(
        timestamp_ms=BORN_MS,
        region="DefaultRegion",
        group="billing",
        topic="OrderTopic",
        message_id=MESSAGE_ID,
        tags=tags,
        keys=keys,
        store_host="127.0.0.1:10911",
        body_bytes=42,
        cost_ms=12,
        kind=kind,
        offset_id="7F000001000051AF0000000000000547",
        is_ok=is_ok,
    )


def before(keys: str | None) -> BeforeTrace:
    return BeforeTrace(
        timestamp_ms=BORN_MS,
        region="DefaultRegion",
        group="billing",
        request_id=REQUEST_ID,
        message_id=MESSAGE_ID,
        retry_count=3,
        keys=keys,
    )


def after(keys: str | None, result: ConsumeResult, *, is_ok: bool) -> AfterTrace:
    return AfterTrace(
        timestamp_ms=BORN_MS,
        group="billing",
        request_id=REQUEST_ID,
        message_id=MESSAGE_ID,
        keys=keys,
        cost_ms=12,
        is_ok=is_ok,
        result=result,
    )


def end(state: EndState, *, is_from_check: bool) -> EndTrace:
    return EndTrace(
        timestamp_ms=BORN_MS,
        region="DefaultRegion",
        group="billing",
        topic="OrderTopic",
        message_id=MESSAGE_ID,
        tags="paid",
        keys="o-17",
        store_host="127.0.0.1:10911",
        transaction_id=MESSAGE_ID,
        state=state,
        is_from_check=is_from_check,
    )


TRACES: dict[str, Trace] = {
    "send": send(tags="paid", keys="o-17 顾客", kind=TraceKind.NORMAL, is_ok=True),
    "send_without_tags_and_keys": send(tags=None, keys=None, kind=TraceKind.DELAY, is_ok=False),
    "before": before("o-17"),
    "before_without_keys": before(None),
    "after": after("o-17", ConsumeResult.SUCCESS, is_ok=True),
    "after_failure": after(None, ConsumeResult.EXCEPTION, is_ok=False),
    "end": end(EndState.COMMIT, is_from_check=False),
    "end_after_check": end(EndState.UNKNOWN, is_from_check=True),
}


def test_every_captured_trace_has_its_twin() -> None:
    assert TRACES.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_trace_is_written_as_rocketmq_writes_it(name: str) -> None:
    assert encode_trace(TRACES[name]).encode().hex() == CASES[name]["text"]


@pytest.mark.parametrize("name", CASES)
def test_a_trace_that_rocketmq_wrote_is_read(name: str) -> None:
    assert decode_traces(bytes.fromhex(CASES[name]["text"]).decode()) == [TRACES[name]]


def test_all_traces_of_a_message_are_read_in_their_order() -> None:
    assert decode_traces("".join(map(encode_trace, TRACES.values()))) == list(TRACES.values())


def test_traces_of_kinds_that_are_not_written_here_are_left_out() -> None:
    recall = "Recall\x01170\x01DefaultRegion\x01billing\x01OrderTopic\x01ID\x01true\x02"
    assert decode_traces(recall + encode_trace(TRACES["send"])) == [TRACES["send"]]


@pytest.mark.parametrize(
    "text", ["Pub\x01170\x01DefaultRegion\x02", "SubBefore\x01noon\x01r\x01g\x01i\x01m\x010\x01k\x02"]
)
def test_a_trace_with_fields_that_are_wrong_or_missing_is_refused(text: str) -> None:
    with pytest.raises(RemoteProtocolError, match="is no trace of the kind"):
        decode_traces(text)
