from tanist.model.message import Message

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
