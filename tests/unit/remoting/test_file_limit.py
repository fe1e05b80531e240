import resource

import pytest

from tanist.remoting.file_limit import first_kept_file, raise_file_limit


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """The limits of a process that is only pretended."""
    kept = {"now": (1024, 20_000)}

    def set_limits(_what: int, limits: tuple[int, int]) -> None:
        kept["now"] = limits

    def get_limits(_what: int) -> tuple[int, int]:
        return kept["now"]

    monkeypatch.setattr(resource, "getrlimit", get_limits)
    monkeypatch.setattr(resource, "setrlimit", set_limits)
    return kept


def test_a_process_takes_as_many_files_as_it_may(limits: dict[str, tuple[int, int]]) -> None:
    raise_file_limit()
    assert limits["now"] == (20_000, 20_000)


def test_a_limit_that_can_not_be_raised_is_lived_with(
    limits: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_what: int, _limits: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_file_limit()
    assert limits["now"] == (1024, 20_000)


@pytest.mark.parametrize(
    ("limit", "first"), [(20_000, 18_976), (1024, 768), (64, 48), (resource.RLIM_INFINITY, (1 << 31) - 1024)]
)
def test_some_files_are_not_for_connections(
    limits: dict[str, tuple[int, int]], limit: int, first: int
) -> None:
    limits["now"] = (limit, limit)
    assert first_kept_file() == first
