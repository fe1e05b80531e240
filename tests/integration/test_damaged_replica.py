"""A replica whose committed messages are damaged is no candidate: it does not start, and says why."""

from pathlib import Path

import pytest

from tanist.store.reader import StoreReader
from tests.support.attacked import wait_until
from tests.support.group_senders import bodies_at
from tests.support.process import ProcessFailed
from tests.support.replicated_log import ends_equal
from tests.support.requests import TOPIC, send_request
from tests.support.tanist_group import NAME, GroupProcess
from tests.support.wire import Wire

BODIES = {b"committed %d" % number for number in range(20)}


def _damage_last_message(store: Path) -> None:
    """Flip a bit in the last message that all replicas hold."""
    with StoreReader(store) as reader:
        record = max(reader.records(), key=lambda record: record.log_offset)
        segment = reader.segments.at(record.log_offset)
        at = bytes(segment.view).index(bytes(record.body), record.log_offset - segment.start)
        path = segment.path
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.known_bug("NATS #7549", "NATS #7556")
def test_a_replica_with_a_bad_checksum_in_what_was_committed_is_never_elected(tmp_path: Path) -> None:
    with GroupProcess(tmp_path) as group:
        master, (slave,) = group.master(), group.slaves()
        with Wire(master.address) as wire:
            for body in sorted(BODIES):
                wire.ask(send_request(body))
        wait_until(lambda: ends_equal(master.store, slave.store))
        # Nobody is there to take either of them out of the set: both are candidates afterwards.
        group.controller.stop()
        slave.stop()
        master.stop()
        _damage_last_message(slave.store)
        group.controller.restart()
        with pytest.raises(ProcessFailed, match="restore the file from a replica"):
            slave.restart()
        assert group.view.group(NAME).master_address != slave.address
        master.restart()
        wait_until(lambda: group.view.group(NAME).master_address == master.address)
        wait_until(lambda: bodies_at(master.address, topic=TOPIC) >= BODIES)
