import importlib.util
import sys
from types import ModuleType

import pytest
from opentelemetry import baggage, context, propagate, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from tanist.client import telemetry
from tanist.client.telemetry import current_context, extract_context, inject_context
from tests.support.received import received_with

TRACER = TracerProvider().get_tracer("tests")


def without_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is where OpenTelemetry is not installed."""
    for name in [name for name in sys.modules if name.split(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    spec = importlib.util.spec_from_file_location("telemetry_alone", telemetry.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_outside_of_spans_nothing_is_added() -> None:
    assert not current_context()
    assert inject_context({"shop": "7"}) == {"shop": "7"}


def test_in_a_span_its_context_is_added_as_w3c_spells_it() -> None:
    with TRACER.start_as_current_span("sell") as span:
        properties = inject_context({"shop": "7"})
    seen = span.get_span_context()
    assert properties == {
        "shop": "7",
        "traceparent": f"00-{seen.trace_id:032x}-{seen.span_id:016x}-{seen.trace_flags:02x}",
    }


def test_what_is_given_already_stays() -> None:
    with TRACER.start_as_current_span("sell"):
        assert inject_context({"traceparent": "mine"}) == {"traceparent": "mine"}


def test_a_span_that_is_not_valid_adds_nothing() -> None:
    with trace.use_span(trace.INVALID_SPAN):
        assert not current_context()


def test_the_propagators_of_the_program_decide_what_travels() -> None:
    token = context.attach(baggage.set_baggage("customer", "c 9"))
    try:
        with TRACER.start_as_current_span("sell"):
            assert current_context().keys() == {"traceparent", "baggage"}
            assert current_context()["baggage"] == "customer=c+9"
    finally:
        context.detach(token)


def test_what_a_property_can_not_hold_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def inject(carrier: dict[str, str]) -> None:
        carrier.update({"empty": "", "torn": "a\x01b", "": "x", "good": "y"})

    monkeypatch.setattr(propagate, "inject", inject)
    with TRACER.start_as_current_span("sell"):
        assert current_context() == {"good": "y"}


def test_the_context_of_a_message_is_the_parent_of_the_span_that_handles_it() -> None:
    with TRACER.start_as_current_span("sell") as sold:
        message = received_with(current_context())
    with TRACER.start_as_current_span("bill", context=extract_context(message)) as billed:
        assert isinstance(billed, ReadableSpan)
        assert billed.parent is not None
        assert billed.parent.span_id == sold.get_span_context().span_id
        assert billed.parent.trace_id == billed.get_span_context().trace_id


def test_a_message_without_a_context_has_an_empty_one_even_inside_of_a_span() -> None:
    with TRACER.start_as_current_span("other"):
        assert extract_context(received_with()) == {}


def test_without_opentelemetry_messages_are_sent_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = without_opentelemetry(monkeypatch)
    assert not alone.current_context()
    assert alone.inject_context({"shop": "7"}) == {"shop": "7"}


def test_without_opentelemetry_asking_for_a_context_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = without_opentelemetry(monkeypatch)
    with pytest.raises(ImportError, match=r"install tanist\[opentelemetry\]"):
        alone.extract_context(received_with())
