"""``tanist store``: what each command prints, and that it changes nothing it need not."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tanist.cli.main import tanist
from tanist.model.message import Message
from tanist.store.settings import StoreSettings
from tanist.store.store import MessageStore

SETTINGS = StoreSettings(mapped_file_size_commit_log=64 << 10)
MESSAGE_COUNT = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store that was closed properly."""
    root = tmp_path / "store"
    with MessageStore.open(root, SETTINGS) as store:
        for number in range(MESSAGE_COUNT):
            properties = f"KEYS\x01k{number}\x02TAGS\x01paid\x02".encode()
            body = f"body {number}".encode()
            store.append(Message(topic="Orders", queue_id=number % 2, body=body, properties=properties))
    return root


def run(*arguments: str | Path, answer: str | None = None) -> Result:
    return CliRunner().invoke(tanist, ["store", *map(str, arguments)], input=answer)


def contents(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def flip_a_bit(root: Path) -> int:
    """Damage the last message of a queue; where its record begins."""
    with MessageStore.open(root, SETTINGS) as store:
        record = store.records("Orders", 0, MESSAGE_COUNT // 2 - 1, 1)[0]
        log_offset, body = record.log_offset, bytes(record.body)
    path = root / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[data.index(body, log_offset)] ^= 1
    path.write_bytes(data)
    return log_offset


def test_info_tells_the_log_range_and_the_queues(folder: Path) -> None:
    before = contents(folder)
    found = json.loads(run("info", folder, "--json").stdout)
    assert found["wasClosed"] is True
    assert found["logStart"] == 0
    assert found["logEnd"] == found["flushedTo"] == found["indexedTo"] > 0
    assert [(queue["topic"], queue["queueId"], queue["maxOffset"]) for queue in found["queues"]] == [
        ("Orders", 0, MESSAGE_COUNT // 2),
        ("Orders", 1, MESSAGE_COUNT // 2),
    ]
    assert contents(folder) == before


def test_info_is_readable_without_json(folder: Path) -> None:
    text = run("info", folder).stdout
    assert "closed properly" in text
    assert "Orders" in text
    assert "nothing is written here" in text


def test_info_works_while_the_store_is_open(folder: Path) -> None:
    with MessageStore.open(folder, SETTINGS):
        found = json.loads(run("info", folder, "--json").stdout)
    assert found["wasClosed"] is False


def test_a_folder_that_is_no_store_is_named(tmp_path: Path) -> None:
    result = run("info", tmp_path)
    assert result.exit_code == 1
    assert str(tmp_path) in str(result.exception)


def test_verify_counts_what_it_checked(folder: Path) -> None:
    result = run("verify", folder, "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (report["recordCount"], report["entryCount"], report["problemCount"]) == (
        MESSAGE_COUNT,
        MESSAGE_COUNT,
        0,
    )


def test_verify_finds_a_flipped_bit_and_says_so_by_its_exit_code(folder: Path) -> None:
    damaged_at = flip_a_bit(folder)
    result = run("verify", folder)
    assert result.exit_code == 1
    assert f"the log ends at {damaged_at}" in result.stdout
    assert "checksum" in result.stdout


def test_cat_prints_messages_as_json_lines(folder: Path) -> None:
    lines = run(
        "cat", folder, "-t", "Orders", "-q", "1", "--from", "3", "-n", "2", "--json"
    ).stdout.splitlines()
    messages = [json.loads(line) for line in lines]
    assert [message["queueOffset"] for message in messages] == [3, 4]
    assert messages[0]["properties"] == {"KEYS": "k7", "TAGS": "paid"}


def test_cat_names_the_topics_there_are(folder: Path) -> None:
    result = run("cat", folder, "-t", "Order")
    assert result.exit_code == 1
    assert "Orders" in result.stderr


def test_repair_leaves_a_sound_store_alone(folder: Path) -> None:
    assert "nothing to repair" in run("repair", folder).stdout


def test_repair_does_nothing_without_a_yes(folder: Path) -> None:
    flip_a_bit(folder)
    before = contents(folder / "commitlog")
    assert run("repair", folder, answer="n\n").exit_code == 1
    assert contents(folder / "commitlog") == before


def test_repair_cuts_at_the_damage_and_keeps_what_it_cuts(folder: Path) -> None:
    damaged_at = flip_a_bit(folder)
    segment = folder / "commitlog" / f"{0:020d}"
    damaged = segment.read_bytes()
    result = run("repair", folder, "--yes")
    assert f"cut at {damaged_at}" in result.stdout
    assert (folder / f"damaged-{damaged_at}" / segment.name).read_bytes() == damaged
    with MessageStore.open(folder, SETTINGS) as store:
        assert store.log.log_end == damaged_at


def test_demo_keeps_its_promises(tmp_path: Path) -> None:
    result = run("demo", "-n", "300", "--folder", tmp_path / "demo")
    assert result.exit_code == 0
    assert "0 missing" in result.stdout


def test_verify_finds_damage_that_no_checkpoint_and_no_queue_tells_of(folder: Path) -> None:
    flip_a_bit(folder)
    (folder / "checkpoint").unlink()
    shutil.rmtree(folder / "consumequeue")
    shutil.rmtree(folder / "index")
    result = run("verify", folder)
    assert result.exit_code == 1
    assert "no crash explains that" in result.stdout


def test_a_file_that_is_still_being_made_counts_as_not_there(folder: Path) -> None:
    (folder / "commitlog" / f"{64 << 10:020d}").touch()
    (folder / "consumequeue" / "Orders" / "0" / f"{6_000_000:020d}").touch()
    before = contents(folder)
    assert run("info", folder).exit_code == 0
    assert run("verify", folder).exit_code == 0
    assert contents(folder) == before


def test_info_tells_of_a_truncation_that_was_begun(folder: Path) -> None:
    (folder / "truncation").write_text("0\n")
    found = json.loads(run("info", folder, "--json").stdout)
    assert (found["truncateTo"], found["logEnd"]) == (0, 0)


def test_a_second_repair_keeps_what_the_first_one_kept(folder: Path) -> None:
    damaged_at = flip_a_bit(folder)
    (folder / f"damaged-{damaged_at}").mkdir()
    result = run("repair", folder, "--yes")
    assert result.exit_code == 0
    assert (folder / f"damaged-{damaged_at}-2").is_dir()


def test_repair_takes_the_sizes_from_the_config_file(tmp_path: Path) -> None:
    root, config = tmp_path / "store", tmp_path / "broker.conf"
    config.write_text("mappedFileSizeCommitLog=65536\nmaxHashSlotNum=16\nmaxIndexNum=64\n")
    settings = StoreSettings(mapped_file_size_commit_log=64 << 10, max_hash_slot_num=16, max_index_num=64)
    with MessageStore.open(root, settings) as store:
        store.append(Message(topic="Orders", queue_id=0, body=b"body", properties=b"KEYS\x01k\x02"))
    assert "nothing to repair" in run("repair", root, "-c", config).stdout


def test_the_demo_wants_a_folder_of_its_own(folder: Path) -> None:
    result = run("demo", "--folder", folder)
    assert result.exit_code == 1
    assert "is not empty" in result.stderr


# What was cut off


def test_what_was_cut_off_is_listed_and_its_messages_are_printed(folder: Path) -> None:
    assert run("diverged", folder).stdout.startswith("nothing was ever cut off")
    assert json.loads(run("diverged", folder, "--json").stdout) == []
    with MessageStore.open(folder, SETTINGS) as store:
        store.begin_epoch(7)
        cut = store.append(Message(topic="Orders", queue_id=0, body=b"lost one")).log_offset
        store.append(Message(topic="Bills", queue_id=0, body=b"lost two"))
        store.keep_diverged(cut)
        store.truncate_to(cut)
    (folder / "diverged" / "29990101T000000.000Z-5").mkdir()
    before = contents(folder)
    whole, torn = json.loads(run("diverged", folder, "--json").stdout)
    assert torn == {"folder": "29990101T000000.000Z-5", "report": None}
    assert whole["report"]["topics"] == {"Orders": 1, "Bills": 1}
    assert (whole["report"]["start"], whole["report"]["messageCount"]) == (cut, 2)
    assert whole["report"]["epochs"] == [{"epoch": 7, "start": cut}]
    listed = run("diverged", folder).stdout
    assert "Bills 1" in listed
    assert "not whole" in listed
    lines = run("diverged", folder, "--cat", whole["folder"]).stdout.splitlines()
    assert [line.split()[-2:] for line in lines] == [["lost", "one"], ["lost", "two"]]
    told = [
        json.loads(line)
        for line in run("diverged", folder, "--cat", whole["folder"], "--json").stdout.splitlines()
    ]
    assert [message["topic"] for message in told] == ["Orders", "Bills"]
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["nothing", "29990101T000000.000Z-5"])
def test_what_is_not_there_or_not_whole_is_not_printed(folder: Path, name: str) -> None:
    (folder / "diverged" / "29990101T000000.000Z-5").mkdir(parents=True)
    result = run("diverged", folder, "--cat", name)
    assert result.exit_code == 1
    assert f"no '{name}' that is whole" in result.output
