"""Typed bodies: the JSON, and the little that is not JSON, that requests and answers carry.

One family a file. ``encode_body`` writes standard JSON; ``decode_java_json`` reads that and Java's
dialect. Shapes that are more than a body, such as routes and topics, live in ``tanist.model``.
"""

from tanist.protocol.bodies.base import Body, encode_body, join_tables
from tanist.protocol.java_json import ObjectKeyed, decode_java_json

__all__ = ["Body", "ObjectKeyed", "decode_java_json", "encode_body", "join_tables"]
