"""Audits of two stores, and what is certified of them."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tanist.cli.audit import audit as audit_command
from tanist.cli.spark_audit import print_audit
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.sync import ConsumerOffsetTable
from tanist.spark.audit.certificate import load, verify
from tanist.spark.audit.job import PART_BYTES, audit
from tanist.spark.errors import SparkError
from tests.support.messages import SMALL, make_message, open_store
from tests.support.spark_stores import fill_store, read_store


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A store and its copy."""
    fill_store(tmp_path / "first")
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    return tmp_path / "first", tmp_path / "second"


def flip(store: Path, log_offset: int) -> None:
    file = store / "commitlog" / f"{log_offset // 4096 * 4096:020d}"
    data = bytearray(file.read_bytes())
    data[log_offset % 4096] ^= 4
    file.write_bytes(data)


def certify(first: Path, second: Path, path: Path) -> None:
    path.write_bytes(msgspec.json.encode(audit(str(first), str(second)).certificate()))


def test_a_copy_is_equal_up_to_its_last_record(pair: tuple[Path, Path]) -> None:
    found = audit(str(pair[0]), str(pair[1]))
    last = read_store(pair[0])[0][-1]

    assert found.is_equal
    assert (found.log_start, found.log_end) == (0, last["commitLogOffset"] + last["storeSize"])


def test_one_flipped_bit_is_named_with_its_record(pair: tuple[Path, Path]) -> None:
    row = read_store(pair[0])[0][40]
    flip(pair[1], row["commitLogOffset"] + 100)

    found = audit(str(pair[0]), str(pair[1]))

    assert (found.is_equal, found.different_blocks) == (False, 1)
    assert found.first_difference == row["commitLogOffset"] + 100
    assert (found.record_start, found.epoch) == (row["commitLogOffset"], None)
    assert found.record == f"{row['topic']}/{row['queueId']} offset {row['queueOffset']}"
    with pytest.raises(SparkError, match="there is nothing to certify"):
        found.certificate()


def test_the_epoch_of_a_difference_is_named(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with open_store(tmp_path / name) as store:
            store.begin_epoch(3)
            for number in range(5):
                store.append(make_message(number))
            store.flush()
            store.dispatcher.confirmed_to = store.log.log_end
            store.dispatch()
    flip(tmp_path / "second", 95)

    assert audit(str(tmp_path / "first"), str(tmp_path / "second")).epoch == 3


def test_what_only_one_log_has_is_told_and_not_compared(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(pair[0]) as store:
        store.append(make_message(99))
        store.flush()
        store.dispatch()

    found = audit(str(pair[0]), str(pair[1]))
    print_audit(found, as_json=False)

    assert found.is_equal
    assert found.ends[0] > found.ends[1] == found.log_end
    assert f"goes on for {found.ends[0] - found.log_end} bytes that not all have" in capsys.readouterr().out


def test_of_three_stores_the_one_that_differs_is_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(pair[0], tmp_path / "third")
    flip(tmp_path / "third", 95)

    found = audit(*map(str, pair), str(tmp_path / "third"))

    assert (found.different_store, found.first_difference) == (str(tmp_path / "third"), 95)
    with pytest.raises(SparkError, match="two stores or more, and one is named"):
        audit(str(pair[0]))


def test_indexes_and_offsets_that_differ_are_named(pair: tuple[Path, Path]) -> None:
    stores = [str(store) for store in pair]
    assert audit(*stores, settings=SMALL).index_problems == []
    queue = pair[1] / "consumequeue" / "TopicB" / "1" / ("0" * 20)
    entries = bytearray(queue.read_bytes())
    entries[3 * 20 + 19] ^= 1
    queue.write_bytes(entries)
    index = min((pair[1] / "index").iterdir())
    content = bytearray(index.read_bytes())
    content[40 + 16 * 4 + 20 + 3] ^= 1
    index.write_bytes(content)
    for store, offset in zip(pair, (7, 9), strict=True):
        (store / "config").mkdir(exist_ok=True)
        table = ConsumerOffsetTable(offset_table={"TopicB@billing": {1: QueueOffset(offset)}})
        (store / "config" / "consumerOffset.json").write_bytes(encode_body(table))

    found = audit(*stores, settings=SMALL)

    assert found.is_equal
    assert found.index_problems == [
        f"queue TopicB/1 differs at offset 3 in {pair[1]}",
        f"the key index of {pair[1]} differs for the log from 0 to {PART_BYTES}",
    ]
    assert found.offset_problems == [f"TopicB@billing/1 is at 7 in {pair[0]} and at 9 in {pair[1]}"]
    assert "give the broker's config" in audit(*stores).index_problems[-1]


def test_a_queue_that_lacks_messages_is_named(pair: tuple[Path, Path]) -> None:
    shutil.rmtree(pair[1] / "consumequeue" / "TopicB" / "0")

    found = audit(*map(str, pair), settings=SMALL)

    assert found.index_problems == [f"queue TopicB/0 ends at 10 in {pair[0]}, at 0 in {pair[1]}"]


def test_logs_with_nothing_in_common_are_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    open_store(tmp_path / "empty").close()

    with pytest.raises(SparkError, match="they have nothing in common"):
        audit(str(pair[0]), str(tmp_path / "empty"))


def test_a_certificate_holds_until_a_byte_is_changed(pair: tuple[Path, Path], tmp_path: Path) -> None:
    certify(*pair, tmp_path / "certificate.json")
    certificate = load(tmp_path / "certificate.json")

    assert verify(certificate, str(pair[1])).holds
    flip(pair[1], certificate.log_end - 1)
    assert "the root over" in verify(certificate, str(pair[1])).reason


def test_a_certificate_of_what_is_not_there_does_not_hold(pair: tuple[Path, Path], tmp_path: Path) -> None:
    certify(*pair, tmp_path / "certificate.json")
    open_store(tmp_path / "empty").close()

    assert "the log holds" in verify(load(tmp_path / "certificate.json"), str(tmp_path / "empty")).reason


def test_the_command_verifies_a_certificate(pair: tuple[Path, Path], tmp_path: Path) -> None:
    certify(*pair, tmp_path / "certificate.json")
    arguments = ["verify", str(tmp_path / "certificate.json"), str(pair[1])]

    good = CliRunner().invoke(audit_command, arguments)
    flip(pair[1], 95)
    bad = CliRunner().invoke(audit_command, [*arguments, "--json"])

    assert (good.exit_code, bad.exit_code) == (0, 1)
    assert "second: holds: [0, " in good.output
    assert json.loads(bad.output)["holds"] is False


def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text("{}")

    with pytest.raises(SparkError, match="is no certificate of an audit"):
        load(tmp_path / "certificate.json")


def test_a_part_is_whole_blocks() -> None:
    """Else the tree would depend on how the work was divided."""
    assert PART_BYTES % (1 << 20) == 0
