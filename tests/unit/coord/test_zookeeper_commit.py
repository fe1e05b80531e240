"""What ZooKeeper's answer to a transaction means."""

import pytest

from tanist.coord import Check, Create
from tanist.coord.kazoo_client import KazooErrors
from tanist.coord.zookeeper_commit import fault

exceptions = pytest.importorskip("kazoo.exceptions")
CHANGES = (Check("/leader", 0), Create("/groups/b", b""))


def test_the_change_at_fault_is_told_from_those_that_only_stood_beside_it() -> None:
    error = exceptions.NodeExistsError()
    answers = (exceptions.RolledBackError(), error)
    assert fault(answers, CHANGES, KazooErrors()) == (CHANGES[1], error)
    assert fault((None, "/groups/b"), CHANGES, KazooErrors()) is None


def test_a_transaction_that_failed_is_not_taken_for_made_though_no_change_is_at_fault() -> None:
    error = exceptions.RolledBackError()
    answers = (error, exceptions.RuntimeInconsistency())
    assert fault(answers, CHANGES, KazooErrors()) == (CHANGES[0], error)
