"""Notes between two whole brokers: who is handed to their duties hears them."""

from functools import partialmethod

import pytest

from tanist.broker.duties import Duties
from tests.support.attacked import wait_until
from tests.support.ha_pair import running_pair
from tests.support.heard_notes import HeardByMaster, HeardBySlave


def test_who_is_handed_to_both_brokers_hears_all_links_from_beginning_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    master, slave = HeardByMaster(), HeardBySlave()
    monkeypatch.setattr(Duties, "master", partialmethod(Duties.master, notes=master))
    monkeypatch.setattr(Duties, "slave", partialmethod(Duties.slave, notes=slave))
    with running_pair() as pair:
        wait_until(lambda: slave.events == master.events == ["begin"])
        pair.cable.cut()
        wait_until(lambda: slave.events == master.events == ["begin", "end"])
        pair.cable.mend()
        wait_until(lambda: slave.events == master.events == ["begin", "end", "begin"])
    assert slave.events == master.events == ["begin", "end", "begin", "end"]
