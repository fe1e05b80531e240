"""A replica whose committed messages are damaged is no candidate, and says why.

It does not start if they are the last ones. Others are found while it runs; then it goes on following.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tanist.cli.main import tanist
from tanist.ha.admission import TAIL_BYTES
from tanist.store.reader import StoreReader
from tests.support.attacked import wait_until
from tests.support.group_senders import bodies_at
from tests.support.process import ProcessFailed
from tests.support.replicated_log import ends_equal
from tests.support.requests import TOPIC, send_request
from tests.support.tanist_group import NAME, GroupProcess
from tests.support.wire import Wire

BODIES = {b"committed %d" % number for number in range(20)}


def _damage(store: Path, *, is_last: bool) -> None:
    """Flip a bit in the first or the last message that all replicas hold."""
    with StoreReader(store) as reader:
        choose = max if is_last else min
        record = choose(reader.records(), key=lambda record: record.log_offset)
        segment = reader.segments.at(record.log_offset)
        at = bytes(segment.view).index(bytes(record.body), record.log_offset - segment.start)
        path = segment.path
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def _ha_status(address: str) -> dict[str, Any]:
    shown = CliRunner().invoke(tanist, ["admin", "haStatus", "-b", address, "--json"])
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)["haStatus"]


def _is_refused_for_damage(address: str) -> bool:
    controlled = _ha_status(address)["controlled"]
    return any("is damaged" in reason for reason in controlled["reasons"])


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
        _damage(slave.store, is_last=True)
        group.controller.restart()
        with pytest.raises(ProcessFailed, match="restore the file from a replica"):
            slave.restart()
        assert group.view.group(NAME).master_address != slave.address
        master.restart()
        wait_until(lambda: group.view.group(NAME).master_address == master.address)
        wait_until(lambda: bodies_at(master.address, topic=TOPIC) >= BODIES)


@pytest.mark.known_bug("NATS #7549", "NATS #7556")
@pytest.mark.takes(12)
def test_a_replica_damaged_long_ago_is_not_elected_until_it_is_filled_anew(tmp_path: Path) -> None:
    with GroupProcess(tmp_path) as group:
        master, (slave,) = group.master(), group.slaves()
        with Wire(master.address) as wire:
            # A master compares the end of both logs, so the damage lies before that.
            for body in (*sorted(BODIES), bytes(TAIL_BYTES)):
                wire.ask(send_request(body))
        wait_until(lambda: ends_equal(master.store, slave.store))
        slave.stop()
        _damage(slave.store, is_last=False)
        slave.restart()
        wait_until(lambda: bool(_ha_status(slave.address)["damage"]))
        (damage,) = _ha_status(slave.address)["damage"]
        assert "commitlog/00000000000000000000 at byte 0: the body does not match its checksum" in damage
        assert f"tanist admin rebuildSlave -b {slave.address}" in damage
        assert "store is damaged" in slave.process.output()
        # It is in step: what was acknowledged since, it does hold.
        group.wait_in_step()
        master.kill()
        slave.kill()
        slave.restart()
        wait_until(lambda: _is_refused_for_damage(slave.address))
        assert group.view.group(NAME).master_address != slave.address
        master.restart()
        wait_until(lambda: group.view.group(NAME).master_address == master.address)
        wait_until(lambda: bodies_at(master.address, topic=TOPIC) >= BODIES)
        wait_until(lambda: _ha_status(slave.address)["haClientRuntimeInfo"]["state"] == "transfer")

        rebuilt = CliRunner().invoke(tanist, ["admin", "rebuildSlave", "-b", slave.address, "--yes"])
        assert rebuilt.exit_code == 0, rebuilt.output
        wait_until(lambda: ends_equal(master.store, slave.store))
        assert _ha_status(slave.address)["damage"] == []
