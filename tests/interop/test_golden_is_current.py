"""The golden bytes are those that the pinned version of Apache RocketMQ writes."""

from pathlib import Path

import pytest

from tests.support import golden, partners

pytestmark = pytest.mark.partner("java", "maven")


def test_the_real_classes_still_write_the_kept_bytes(tmp_path: Path) -> None:
    try:
        captured = golden.capture(tmp_path)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)

    assert sorted(captured) == golden.kept_files()
    for file, cases in captured.items():
        kept = golden.load(file)
        assert list(cases) == list(kept), file
        for name, case in cases.items():
            if case.get("varies"):
                assert case.keys() == kept[name].keys()
            else:
                assert case == kept[name], f"{file}/{name} differs: run make golden and look at what changed"
