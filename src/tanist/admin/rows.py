"""Rows: what operators are told in tables. In JSON their names are camelCase, as RocketMQ's are."""

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of every row. A field that ends in ``_at_ms`` is a moment, in milliseconds since 1970."""
