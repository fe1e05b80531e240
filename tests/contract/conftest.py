"""The homes of the registry, each of which has to pass every test here."""

from pathlib import Path

import pytest

from tests.support.registries import RegistrySite, RemoteSite, SqliteSite, ZooKeeperSite


@pytest.fixture(
    params=["sqlite", "remote", pytest.param("zookeeper", marks=pytest.mark.partner("java", "maven"))],
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> RegistrySite:
    """A registry of each home."""
    if request.param == "sqlite":
        return SqliteSite(tmp_path)
    if request.param == "remote":
        return RemoteSite(tmp_path)
    return ZooKeeperSite(request.getfixturevalue("zookeeper").hosts)
