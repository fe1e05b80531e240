from pathlib import Path

import msgspec
import pytest

from tanist.broker.controlled.identity import AppliedIdentity, Identity, IdentityFiles
from tanist.errors import ConfigError, ForeignFile
from tanist.store.disk import Disk
from tests.support.broker_tables import SETTINGS


def _files(root: Path, **changes: str) -> IdentityFiles:
    settings = msgspec.structs.replace(SETTINGS, store_path_root_dir=str(root), **changes)
    return IdentityFiles(Disk(), settings)


MINE = Identity("DefaultCluster", "broker-a", 3)
APPLIED = AppliedIdentity(MINE, "10.0.0.1:10911;1700000000000")


def test_a_broker_that_never_asked_is_nobody(tmp_path: Path) -> None:
    assert _files(tmp_path / "none").load() is None


def test_the_files_have_the_form_that_rocketmq_gives_them(tmp_path: Path) -> None:
    files = _files(tmp_path)
    files.apply_for(APPLIED)
    assert (
        tmp_path / "brokerIdentity-temp"
    ).read_text() == "DefaultCluster#broker-a#3#10.0.0.1:10911;1700000000000"
    assert files.load() == APPLIED
    files.keep(MINE)
    assert (tmp_path / "brokerIdentity").read_text() == "DefaultCluster#broker-a#3"
    assert not (tmp_path / "brokerIdentity-temp").exists()
    assert files.load() == MINE


def test_an_id_that_was_applied_for_can_be_given_up(tmp_path: Path) -> None:
    files = _files(tmp_path)
    files.apply_for(APPLIED)
    files.give_up()
    assert files.load() is None


def test_a_crash_after_the_id_was_kept_leaves_it_kept(tmp_path: Path) -> None:
    files = _files(tmp_path)
    files.keep(MINE)
    files.apply_for(AppliedIdentity(files.identity(4), "x;1"))
    assert files.load() == MINE


def test_the_path_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "other" / "me"
    _files(tmp_path, store_path_broker_identity=str(path)).keep(MINE)
    assert path.read_text() == "DefaultCluster#broker-a#3"


def test_a_line_end_behind_the_id_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "brokerIdentity").write_text("DefaultCluster#broker-a#3\n")
    assert _files(tmp_path).load() == MINE


@pytest.mark.parametrize("key", ["broker_name", "broker_cluster_name"])
def test_a_name_with_the_separator_is_refused_by_its_key(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match="without #") as refused:
        _files(tmp_path, **{key: "a#b"})
    assert refused.value.key == {"broker_name": "brokerName", "broker_cluster_name": "brokerClusterName"}[key]


@pytest.mark.parametrize("changes", [{"broker_name": "broker-b"}, {"broker_cluster_name": "Other"}])
def test_the_file_of_another_broker_is_refused_with_the_way_out(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    _files(tmp_path).keep(MINE)
    with pytest.raises(ForeignFile, match="replica 3 of broker-a in cluster DefaultCluster") as refused:
        _files(tmp_path, **changes).load()
    assert "a store of its own" in refused.value.remedy


@pytest.mark.parametrize(
    "text", ["", "DefaultCluster#broker-a", "DefaultCluster#broker-a#x", "DefaultCluster#broker-a#0", "#" * 9]
)
def test_a_file_that_makes_no_sense_is_refused_with_the_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "brokerIdentity").write_text(text)
    with pytest.raises(ForeignFile, match="getSyncStateSet"):
        _files(tmp_path).load()


def test_a_senseless_file_of_an_id_that_was_applied_for_may_be_deleted(tmp_path: Path) -> None:
    (tmp_path / "brokerIdentity-temp").write_text("DefaultCluster#broker-a#3")
    with pytest.raises(ForeignFile, match="delete it"):
        _files(tmp_path).load()
