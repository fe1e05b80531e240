from pathlib import Path

import pytest

from tanist.client.offsets.offset_file import OffsetFile, encode_offsets
from tanist.errors import ForeignFile
from tanist.model.route import MessageQueue
from tests.support import golden
from tests.support.offset_stores import offsets_of, queue_of

GOOD = encode_offsets(offsets_of([(0, 5)]))
OTHER = encode_offsets(offsets_of([(1, 7)]))


@pytest.fixture
def file(tmp_path: Path) -> OffsetFile:
    return OffsetFile(tmp_path / "offsets.json")


def put(file: OffsetFile, main: bytes | None, backup: bytes | None) -> None:
    for path, data in ((file.path, main), (file.path.with_name("offsets.json.bak"), backup)):
        if data is not None:
            path.write_bytes(data)


@pytest.mark.behaviour("S4-35")
def test_the_file_that_rocketmq_wrote_is_read(file: OffsetFile) -> None:
    put(file, golden.load("config_files")["broadcast_offsets"]["text"].encode(), None)
    assert file.read().offsets == {
        MessageQueue(topic="TopicA", broker_name="broker-a", queue_id=0): 5,
        MessageQueue(topic="TopicA", broker_name="broker-a", queue_id=3): 42,
    }


@pytest.mark.behaviour("S4-35")
def test_queues_are_laid_out_as_rocketmq_does() -> None:
    assert encode_offsets(offsets_of([(3, 42), (0, 5)])).decode() == (
        '{\n\t"offsetTable":{'
        '{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":0,\n\t\t\t"topic":"T"\n\t\t}:5,'
        '{\n\t\t\t"brokerName":"broker-a",\n\t\t\t"queueId":3,\n\t\t\t"topic":"T"\n\t\t}:42'
        "\n\t}\n}"
    )


@pytest.mark.parametrize("name", ['a"b', "a\\", "größe", "\U0001f600", "{}:", "a\nb"])
def test_any_name_is_read_as_it_was_written(file: OffsetFile, name: str) -> None:
    offsets = {queue_of(0, broker=name, topic=name): offsets_of([(0, 5)])[queue_of(0)]}
    put(file, encode_offsets(offsets), None)
    assert file.read().offsets == offsets


@pytest.mark.parametrize("broken", [b"{", GOOD[:-3], b"[]", b"null", b"\xff", b'{"offsetTable":{"x":1}}'])
def test_a_broken_file_gives_way_to_its_backup(
    file: OffsetFile, broken: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    put(file, broken, OTHER)
    assert file.read().offsets == {queue_of(1): 7}
    assert f"backup is used path={file.path}" in caplog.text


@pytest.mark.parametrize("main", [None, b""])
def test_a_missing_or_empty_file_gives_way_to_its_backup(file: OffsetFile, main: bytes | None) -> None:
    put(file, main, OTHER)
    assert file.read().offsets == {queue_of(1): 7}


@pytest.mark.parametrize("main", [None, b"", b"{}"])
def test_without_any_file_there_are_no_offsets(file: OffsetFile, main: bytes | None) -> None:
    put(file, main, None)
    assert file.read().offsets == {}


@pytest.mark.parametrize(
    ("main", "backup", "named"),
    [
        (b"{", b"{", "offsets.json"),
        (b"{", None, "offsets.json"),
        (b"{", b"", "offsets.json"),
        (b"", b"{", "offsets.json.bak"),
        (None, b"{", "offsets.json.bak"),
    ],
)
def test_if_nothing_can_be_read_the_error_names_the_file_and_what_to_do(
    file: OffsetFile, main: bytes | None, backup: bytes | None, named: str
) -> None:
    put(file, main, backup)
    with pytest.raises(ForeignFile, match=r"delete it and offsets\.json\.bak") as caught:
        file.read()
    assert caught.value.path == file.path.with_name(named)
    assert str(caught.value.path) in str(caught.value)


def test_a_file_that_may_not_be_read_is_not_taken_for_none(file: OffsetFile) -> None:
    file.path.mkdir()
    with pytest.raises(ForeignFile, match="Is a directory"):
        file.read()


def test_a_negative_offset_means_none(file: OffsetFile) -> None:
    put(file, GOOD.replace(b"}:5", b"}:-1"), None)
    assert file.read().offsets == {}


def test_what_was_there_before_becomes_the_backup(file: OffsetFile) -> None:
    put(file, GOOD, None)
    file.write(offsets_of([(1, 7)]), file.read())
    assert file.path.read_bytes() == OTHER
    assert file.path.with_name("offsets.json.bak").read_bytes() == GOOD


def test_a_broken_file_does_not_replace_a_good_backup(file: OffsetFile) -> None:
    put(file, b"{", GOOD)
    file.write(offsets_of([(1, 7)]), file.read())
    assert file.path.read_bytes() == OTHER
    assert file.path.with_name("offsets.json.bak").read_bytes() == GOOD
