"""Typed headers: the ext fields of every request and answer, one request family a file.

``base`` turns ext fields into a typed header and back; ``registry`` says which header belongs to
which request code. Wire names are RocketMQ's to the letter, attribute names are ours.
"""

from tanist.protocol.headers.base import Header, NoFields, decode_header, encode_header

__all__ = ["Header", "NoFields", "decode_header", "encode_header"]
