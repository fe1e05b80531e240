"""``tanist check`` on histories that are there already."""

import json
from pathlib import Path

from click.testing import CliRunner

from tanist.check import Began, Ended, Event, Held, Log, Outcome
from tanist.check.history import encode_event
from tanist.cli.check import check

QUEUE = "orders@broker-a:0"


def write(path: Path, *events: Event) -> Path:
    path.write_bytes(b"".join(map(encode_event, events)))
    return path


def sent(tmp_path: Path) -> Path:
    ended = Ended(1, "p", "p/0", Outcome.OK, QUEUE, 0)
    return write(tmp_path / "p.jsonl", Began(0, "p", "p/0"), ended)


def test_a_sound_history_ends_with_code_0(tmp_path: Path) -> None:
    sent(tmp_path)
    log = Log(3, "master", QUEUE, 0, 1, is_master=True)
    write(tmp_path / "final.jsonl", Held(2, "master", QUEUE, 0, "p/0"), log)
    done = CliRunner().invoke(check, [str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "acknowledged" in done.output


def test_a_loss_ends_with_code_1_and_is_named(tmp_path: Path) -> None:
    final = write(tmp_path / "final.jsonl", Log(3, "master", QUEUE, 0, 0, is_master=True))
    done = CliRunner().invoke(check, [str(sent(tmp_path)), str(final)])
    assert done.exit_code == 1
    assert f"history: lost at {QUEUE}@0: p/0 was acknowledged" in done.output


def test_the_json_has_counts_and_anomalies(tmp_path: Path) -> None:
    done = CliRunner().invoke(check, [str(sent(tmp_path)), "--json"])
    (verdict,) = json.loads(done.stdout).values()
    assert verdict["isSound"]
    assert verdict["counts"]["acknowledged"] == 1
    assert verdict["unjudged"] == ["what was lost: the history has no final log of a master"]


def test_either_histories_or_targets_are_wanted(tmp_path: Path) -> None:
    for arguments in ([], [str(tmp_path), "--target", "a=127.0.0.1:9876"]):
        done = CliRunner().invoke(check, arguments)
        assert done.exit_code == 2
        assert "give either histories to judge, or --target" in done.output


def test_a_folder_without_histories_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(check, [str(tmp_path)])
    assert done.exit_code == 2
    assert "there is no file *.jsonl in it" in done.output


def test_a_target_needs_a_name_and_an_address() -> None:
    done = CliRunner().invoke(check, ["--target", "127.0.0.1:9876"])
    assert "give NAME=HOST:PORT" in done.output
