"""OpenTelemetry's context in message properties, so that a trace goes on where a message is handled.

Optional: with ``tanist[opentelemetry]`` installed, every message that is sent while a span is current carries
that span's context (``traceparent``, ``tracestate``, and whatever else the program's propagators write).
No spans are made here: what a span is about only the program knows.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tanist.client.received import ReceivedMessage

try:
    from opentelemetry import propagate, trace
except ImportError:
    propagate = trace = None

if TYPE_CHECKING:
    from opentelemetry.context import Context

_NOTHING: Mapping[str, str] = {}
_FORBIDDEN = frozenset("\x00\x01\x02")


def current_context() -> Mapping[str, str]:
    """The properties that tell of the current span; none without OpenTelemetry or outside of spans."""
    if trace is None or propagate is None or not trace.get_current_span().get_span_context().is_valid:
        return _NOTHING
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return {
        name: value for name, value in carrier.items() if name and value and _is_sendable(f"{name}{value}")
    }


def inject_context(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties, and those that tell of the current span. What is given already stays as it is.

    Producers do this by themselves. It is for messages that are made in one span and sent in another.

    >>> inject_context({"shop": "7"})
    {'shop': '7'}
    """
    return {**current_context(), **properties}


def extract_context(message: ReceivedMessage) -> "Context":
    """The context that a message was sent in: give it to the span that handles the message.

    It is empty if the message carries none. Raises ImportError if OpenTelemetry is not installed.

    >>> from opentelemetry import trace
    >>> tracer = trace.get_tracer("billing")
    >>> async def bill(message: ReceivedMessage) -> None:
    ...     with tracer.start_as_current_span("bill", context=extract_context(message)):
    ...         print(message.body)
    >>> receipt = await producer.send(Message("OrderTopic", b"order 17"))
    >>> await bill(await anext(aiter(consumer)))
    b'order 17'
    """
    if propagate is None:
        raise ImportError("extract_context needs OpenTelemetry: install tanist[opentelemetry]")
    return propagate.extract(message.properties)


def _is_sendable(text: str) -> bool:
    return _FORBIDDEN.isdisjoint(text)
