"""Bytes to values and back, with no I/O: frames, headers, bodies, records.

``frame`` cuts a stream into Commands; ``headers`` types their ext fields, ``bodies`` their JSON
bodies, read through ``java_json``; ``codes`` has the numbers. Decoders raise RemoteProtocolError
and nothing else at what a peer sent; encoders raise LocalProtocolError at what we must not send.
"""

from tanist.protocol.codes import HeaderEncoding, Language, RequestCode, ResponseCode
from tanist.protocol.frame import Command, FrameDecoder, encode_command
from tanist.protocol.headers import Header, decode_header, encode_header

__all__ = [
    "Command",
    "FrameDecoder",
    "Header",
    "HeaderEncoding",
    "Language",
    "RequestCode",
    "ResponseCode",
    "decode_header",
    "encode_command",
    "encode_header",
]
