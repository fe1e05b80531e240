"""One SEND_MESSAGE_V2 frame in, its answer out, beside the standard library's json doing the same."""

import json
import struct
import time
from collections.abc import Callable

from bench.table import Row, interleaved
from tanist.model.offsets import QueueOffset
from tanist.protocol.frame import FrameDecoder, encode_send_answer
from tanist.protocol.headers.send import SendMessageRequestV2

_ROUNDS = 7
_COUNT = 20_000
_LENGTHS = struct.Struct(">ii")
_BODY = b"x" * 1024
_HEADER = json.dumps(
    {
        "code": 310,
        "extFields": {
            "a": "bench_group",
            "b": "BenchTopic",
            "c": "TBW102",
            "d": "4",
            "e": "1",
            "f": "0",
            "g": "1700000000000",
            "h": "0",
            "i": "UNIQ_KEY\x01" + "A" * 32 + "\x02WAIT\x01true\x02TAGS\x01TagA\x02",
            "j": "0",
            "k": "false",
            "m": "false",
            "n": "broker-a",
        },
        "flag": 0,
        "language": "JAVA",
        "opaque": 17,
        "serializeTypeCurrentRPC": "JSON",
        "version": 479,
    },
    separators=(",", ":"),
).encode()
_FRAME = _LENGTHS.pack(4 + len(_HEADER) + len(_BODY), len(_HEADER)) + _HEADER + _BODY
_MESSAGE_ID = "7F00000100002A9F0000000000000000"


def run() -> list[Row]:
    ours, peer = interleaved(_ROUNDS, lambda: _micros(_tanist), lambda: _micros(_stdlib))
    return [
        Row(
            "decode SEND_MESSAGE_V2, encode its answer",
            f"{ours:.1f} µs",
            f"json {peer:.1f} µs",
            ours / peer,
            "",
            None,
        )
    ]


def _micros(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) / _COUNT * 1e6


def _tanist() -> None:
    decoder = FrameDecoder()
    for number in range(_COUNT):
        for command in decoder.feed(_FRAME):
            header = command.header(SendMessageRequestV2)
            encode_send_answer(
                command,
                code=0,
                msg_id=_MESSAGE_ID,
                queue_id=header.queue_id,
                queue_offset=QueueOffset(number),
                unique_key="A" * 32,
            )


def _stdlib() -> None:
    answers = 0
    for number in range(_COUNT):
        _total, header_bytes = _LENGTHS.unpack_from(_FRAME)
        header = json.loads(_FRAME[8 : 8 + header_bytes])
        answer = json.dumps(
            {
                "code": 0,
                "extFields": {
                    "MSG_REGION": "DefaultRegion",
                    "TRACE_ON": "true",
                    "msgId": _MESSAGE_ID,
                    "queueId": str(int(header["extFields"]["e"])),
                    "queueOffset": str(number),
                    "transactionId": "A" * 32,
                },
                "flag": 1,
                "language": "PYTHON",
                "opaque": header["opaque"],
                "serializeTypeCurrentRPC": "JSON",
                "version": 479,
            },
            separators=(",", ":"),
        ).encode()
        answers += len(_LENGTHS.pack(4 + len(answer), len(answer)) + answer)
