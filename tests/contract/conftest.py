"""The homes of the registry, each of which has to pass every test here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import partners
from tests.support.registries import RegistrySite, SqliteSite, ZooKeeperSite
from tests.support.zookeeper import Ensemble


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """One server, for all tests of a worker."""
    try:
        ensemble = Ensemble(tmp_path_factory.mktemp("zookeeper"), size=1)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with ensemble:
        yield ensemble


@pytest.fixture(
    params=["sqlite", pytest.param("zookeeper", marks=pytest.mark.partner("java", "maven"))],
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> RegistrySite:
    """A registry of each home."""
    if request.param == "sqlite":
        return SqliteSite(tmp_path)
    return ZooKeeperSite(request.getfixturevalue("zookeeper").hosts)
