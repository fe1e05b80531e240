from typing import TypeAlias

from tanist.model.message import Message

Plan: TypeAlias = tuple[dict[str, int], dict[tuple[str, int], int], bytes, bytes, int, tuple[bytes, ...]]
Taken: TypeAlias = tuple[bytes, bytes, list[tuple[int, int, int]], tuple[str, int], int, bytes, int]
Walked: TypeAlias = tuple[int, int, list[tuple[str, int, int, bytes, int]], list[tuple[int, int, int]], int]

HAS_FAST_CRC: int

def crc32(data: bytes | bytearray | memoryview, value: int = 0, /) -> int: ...
def lay_out(
    message: Message, queue_offset: int, log_offset: int, store_timestamp_ms: int, store_host: bytes, /
) -> tuple[bytes, bytes, list[tuple[int, int, int]]] | None: ...
def lay_out_batch(
    batch: Message,
    queue_offset: int,
    log_offset: int,
    store_timestamp_ms: int,
    store_host: bytes,
    max_bytes: int,
    /,
) -> tuple[bytes, bytes, list[tuple[int, int, int]]] | None: ...
def take_send(
    header: bytes, body: bytes | memoryview, born_host: bytes, plan: Plan, log_offset: int, now_ms: int, /
) -> Taken | None: ...
def send_envelope(header: bytes, /) -> tuple[int, int, str, int] | None: ...
def walk_records(
    view: memoryview | bytes,
    start: int,
    end: int,
    log_offset: int,
    max_count: int,
    delay_levels: tuple[int, ...],
    /,
) -> Walked | None: ...
def pass_sound(view: bytes | memoryview, log_offset: int, /) -> int: ...
def data_head(log_offset: int, size_bytes: int, epoch: int, confirmed_to: int, body_crc: int, /) -> bytes: ...
def lone_ack(data: bytes, kind: int, least: int, most: int, /) -> int: ...
def put_keys(
    file: memoryview | bytearray,
    keyed: list[tuple[int, int, int]],
    slot_count: int,
    first: int,
    begin_timestamp_ms: int,
    /,
) -> int | None: ...
