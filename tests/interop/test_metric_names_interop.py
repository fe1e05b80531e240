"""What we export under RocketMQ's names is called so by RocketMQ, in the constants of its classes."""

import re
import zipfile
from collections.abc import Iterator

import pytest

from tanist.metrics.names import ALL
from tests.support.rocketmq import jars

_CONSTANT = re.compile(rb"\x01\x00.([a-z][a-z0-9_]+)", re.DOTALL)
"""A text in a class file: a tag, its length in two bytes, and the text."""
_UNITS = ("", "_milliseconds", "_bytes")
"""What an exporter for Prometheus adds to a name."""
_OURS = "tanist_"


def their_names() -> Iterator[str]:
    for jar in jars.install().jars.glob("rocketmq-*.jar"):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith("MetricsConstant.class"):
                    yield from (found.decode() for found in _CONSTANT.findall(archive.read(name)))


@pytest.mark.partner("java", "maven")
def test_every_metric_without_our_prefix_has_a_name_of_rocketmqs() -> None:
    theirs = {f"{name}{unit}" for name in their_names() for unit in _UNITS}
    claimed = {each.name for each in ALL if not each.name.startswith(_OURS)}
    assert len(claimed) > 20
    assert claimed - theirs == set()
