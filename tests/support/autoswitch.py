"""A small log of several epochs, and both ends of an auto-switch link over it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tanist.ha.actions import AppendLog, BeginEpoch, SlaveAction
from tanist.ha.autoswitch_master import AutoswitchMasterLink
from tanist.ha.autoswitch_slave import AutoswitchSlaveLink
from tanist.model.epochs import Epoch, EpochHistory
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_autoswitch import SlaveHandshake
from tanist.protocol.ha_link import AckKind
from tanist.store import MessageStore
from tests.support.messages import SMALL, make_message, open_store

FILE_BYTES = SMALL.mapped_file_size_commit_log
BATCH_BYTES = 512
BROKER_ID = 2


def open_reigns(root: Path, reigns: Sequence[tuple[int, int]], *, body_bytes: int = 100) -> MessageStore:
    """A store with so many messages (second) of each epoch (first). Every tenth is larger than a frame."""
    store = open_store(root)
    number = 0
    for epoch, count in reigns:
        store.begin_epoch(epoch)
        for _ in range(count):
            store.append(make_message(number, body_bytes=1500 if number % 10 == 9 else body_bytes))
            number += 1
    return store


def history(*epochs: tuple[int, int]) -> EpochHistory:
    return EpochHistory(Epoch(epoch, LogOffset(start)) for epoch, start in epochs)


def log_bytes(store: MessageStore, start: int = 0, end: int | None = None) -> bytes:
    """The log from here to there."""
    pieces: list[bytes] = []
    while start < store.log.log_end:
        pieces.append(bytes(store.log.read_ahead(start, FILE_BYTES)))
        start += len(pieces[-1])
    whole = b"".join(pieces)
    return whole if end is None else whole[: end - store.log.log_end or None]


def master_link(
    store: MessageStore,
    *,
    is_known: Callable[[int], bool] = lambda broker_id: broker_id == BROKER_ID,
    confirmed_to: Callable[[], int] | None = None,
    epochs: EpochHistory | None = None,
    batch_bytes: int = BATCH_BYTES,
) -> AutoswitchMasterLink:
    return AutoswitchMasterLink(
        log=store.log,
        look_at_epochs=lambda: store.epochs if epochs is None else epochs,
        confirmed_to=confirmed_to or (lambda: store.log.log_end),
        may_come=is_known,
        file_bytes=FILE_BYTES,
        batch_bytes=batch_bytes,
        now_s=100.0,
        heartbeat_s=5.0,
        silence_s=20.0,
    )


def slave_link(log_end: int = 0, epochs: EpochHistory | None = None) -> AutoswitchSlaveLink:
    return AutoswitchSlaveLink(
        handshake=SlaveHandshake(BROKER_ID),
        log_end=log_end,
        epochs=epochs or EpochHistory(),
        file_bytes=FILE_BYTES,
        ack_kind=AckKind.RECEIVED,
        now_s=100.0,
        heartbeat_s=5.0,
        silence_s=20.0,
    )


def receive(link: AutoswitchSlaveLink, data: bytes, *, now_s: float = 100.0) -> list[SlaveAction]:
    """Take what came as the shell does, whose appends succeed."""
    actions, used = link.on_bytes(memoryview(data), now_s=now_s)
    assert used == len(data)
    for action in actions:
        if isinstance(action, AppendLog):
            assert action.log_offset == link.log_end or not link.log_end
            link.on_appended(action.log_offset + len(action.body))
        elif isinstance(action, BeginEpoch):
            assert action.start <= link.log_end or not link.log_end
    return actions
