"""The tests here need the packages of the extra. Where they are missing one test is left, which says so."""

from importlib.util import find_spec

import pytest

from tests.support.partners import require

collect_ignore_glob = [] if find_spec("pyarrow") else ["test_[!_]*.py"]


@pytest.fixture(params=["c", "python"])
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that asks for this is for both, what C does and what Python does in its place."""
    from tanist.spark import decoding, properties  # noqa: PLC0415 - it needs what may not be installed.

    if request.param == "c":
        require("native")
        assert decoding.native is not None
        return
    monkeypatch.setattr(decoding, "native", None)
    monkeypatch.setattr(properties, "native", None)
