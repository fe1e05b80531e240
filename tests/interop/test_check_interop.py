"""The checker judges Apache RocketMQ by the rules by which it judges Tanist."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tanist.cli.check import check
from tests.support.rocketmq.jars import install

pytestmark = pytest.mark.partner("java", "maven")


@pytest.mark.takes(20)
def test_rocketmq_is_started_and_has_a_column_beside_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").symlink_to(install().jars)
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    done = CliRunner().invoke(check, ["--target", "rocketmq", "--seconds", "1", "--rate", "50", "--json"])
    assert done.exit_code == 0, done.output
    verdicts = json.loads(done.stdout)
    assert list(verdicts) == ["tanist", "rocketmq"]
    for verdict in verdicts.values():
        assert verdict["isSound"], verdict
        assert verdict["counts"]["acknowledged"] > 0
        assert verdict["unjudged"] == []
