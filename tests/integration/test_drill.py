"""``tanist admin drill``: a failover rehearsed on a live group."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.admin.refused import Unsafe
from tanist.cli.main import tanist
from tests.support.tanist_group import NAME, GroupProcess


def drill(group: GroupProcess, *options: str, answer: str | None = None) -> Result:
    words = ["admin", "drill", "-n", group.names.address, "-b", NAME, *options]
    return CliRunner().invoke(tanist, words, input=answer)


@pytest.mark.takes(20)
def test_a_drill_moves_mastership_brings_it_back_and_refuses_what_is_unsafe(tmp_path: Path) -> None:
    with GroupProcess(tmp_path) as group:
        master = group.master()
        kept = drill(group, answer="another\n")
        assert kept.exit_code == 1
        assert group.master() is master
        done = drill(group, "--yes", "--json")
        assert done.exit_code == 0, f"{done.output}{done.exception!r}"
        report = json.loads(done.stdout)
        first, second = report["steps"]
        assert (first["fromAddr"], second["toAddr"]) == (master.address, master.address)
        assert second["epoch"] > first["epoch"]
        seen = report["seen"]
        assert seen["sentCount"] > 0
        assert seen["lostCount"] == 0
        assert group.master() is master
        group.slaves()[0].kill()
        refused = drill(group, "--yes")
        assert isinstance(refused.exception, Unsafe), refused.output
        assert group.master() is master
