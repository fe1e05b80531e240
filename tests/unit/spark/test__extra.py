"""Says that the packages of the extra are missing, where they are: the other tests are not even read then."""

import pytest


@pytest.mark.partner("arrow")
def test_the_packages_of_the_extra_are_here() -> None:
    """Nothing to do: without its partner this test is skipped, or fails where ``CI=true``."""
