"""Config files mean to Tanist what they mean to Java and to RocketMQ."""

from pathlib import Path

import pytest

from tanist.config import parse_properties, to_properties
from tanist.errors import ConfigError
from tanist.store import StoreSettings
from tests.support import partners
from tests.support.rocketmq import Installation, install
from tests.support.rocketmq.client import ask

pytestmark = pytest.mark.partner("java", "maven")

STORE_CLASS = "org.apache.rocketmq.store.config.MessageStoreConfig"

OUR_OWN_STORE_KEYS = {"scrubBytesPerSecond"}
"""Keys that RocketMQ does not have. A new one belongs here and into the page on configuration."""

TEXTS = [
    "a=1",
    "a:1",
    "a 1",
    "a\t1",
    "a\f1",
    "a = 1",
    "a  :  1",
    "  \t a=1",
    "a=1  ",
    "a",
    "a=",
    "a = ",
    "=1",
    ": 1",
    "a==1",
    "a=:1",
    "a : = 1",
    "a b=c",
    "a=b#c!d",
    "# a=1\n! b=2\n  # c=3\nd=4",
    "# a comment does not go on \\\na=1",
    "a=1\r\nb=2\rc=3\n\n\nd=4",
    "a=1\na=2",
    "a=b\\\nc",
    "a=b\\\n    c",
    "a=b \\\r\n\t c\\\r d",
    "a=b\\\n\nc=d",
    "a=b\\\n# no comment",
    "a\\\nb=c",
    "a\\\n=c",
    "a=b\\",
    "\\\n# a comment\na=1",
    "a=b\\\\\nc=d",
    "a=b\\\\\\\nc",
    r"a\=b=c",
    r"a\:b\ c=d",
    r"\#a=b",
    r"a=\ b",
    r"a=\t\n\r\f\q\"\'\\ ",
    r"a=\u00e9\u4E2d\u0041",
    r"\u0061=b",
    r"a=\ud83d\ude00",
    r"a=\u00g1",
    r"a=\u12",
    r"a=\U0041",
    "a=\u00e9\u4e2d\U0001f600",
    "a=b\u0085c\u2028d\x0be",
    "storePathRootDir=C\\:\\\\mq\\\\store",
    "storePathRootDir=C:\\mq\\tmp",
    "messageDelayLevel=1s 5s \\\n                  10s",
]


@pytest.fixture(scope="module")
def installation() -> Installation:
    try:
        return install()
    except partners.PartnerMissing as lack:
        partners.do_without(lack)


def test_a_file_is_read_as_java_reads_it(installation: Installation, tmp_path: Path) -> None:
    answers = ask(installation, "read-properties", home=tmp_path, texts=TEXTS)
    assert [read(text) for text in TEXTS] == [answer.get("properties") for answer in answers]


def test_the_store_has_rocketmqs_keys_and_defaults(installation: Installation, tmp_path: Path) -> None:
    theirs = settings(installation, tmp_path, "")
    ours = {
        key: text for key, text in to_properties(StoreSettings()).items() if key not in OUR_OWN_STORE_KEYS
    }
    assert ours == {key: theirs.get(key) for key in ours}
    assert OUR_OWN_STORE_KEYS.isdisjoint(theirs)


def test_blanks_around_a_text_are_trimmed_as_rocketmq_does(
    installation: Installation, tmp_path: Path
) -> None:
    assert settings(installation, tmp_path, "deleteWhen=\\u0001 02;14 \t")["deleteWhen"] == "02;14"


def settings(installation: Installation, home: Path, text: str) -> dict[str, str]:
    """What RocketMQ's store runs with after it read ``text``."""
    (answer,) = ask(installation, "settings", home=home, className=STORE_CLASS, text=text)
    return answer["settings"]


def read(text: str) -> dict[str, str] | None:
    try:
        return parse_properties(text, source="a.conf")
    except ConfigError:
        return None
