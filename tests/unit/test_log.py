"""The log of a process: one line a record, and no secrets."""

import json
import logging
import re
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest
from click.testing import CliRunner

from tanist.cli.main import tanist
from tanist.errors import ConfigError
from tanist.log import ProcessLog, ToldFailures

logger = logging.getLogger("tanist.ha.acceptor")

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d (?P<rest>.*)")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "broker.log"


@pytest.fixture
def process_log(file: Path) -> Iterator[ProcessLog]:
    with ProcessLog(level=logging.INFO, file=file) as process_log:
        yield process_log


def lines(file: Path) -> list[str]:
    """What stands behind the time of each line."""
    found = [LINE.fullmatch(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line["rest"] for line in found if line is not None]


@pytest.mark.usefixtures("process_log")
def test_a_line_is_time_level_logger_phrase_and_values(file: Path) -> None:
    logger.info("slave joined slave=%s acked_to=%d", "10.0.0.7:40112", 8192)
    assert lines(file) == ["INFO tanist.ha.acceptor slave joined slave=10.0.0.7:40112 acked_to=8192"]


def test_the_level_can_be_changed(process_log: ProcessLog, file: Path) -> None:
    logger.debug("not told")
    process_log.set_level(logging.DEBUG)
    logger.debug("told")
    assert lines(file) == ["DEBUG tanist.ha.acceptor told"]


def test_without_a_file_it_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with ProcessLog(level=logging.INFO):
        logger.info("started")
    assert capsys.readouterr().err.endswith("INFO tanist.ha.acceptor started\n")


def test_the_root_logger_is_left_as_it_was(file: Path) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    with ProcessLog(level=logging.DEBUG, file=file):
        pass
    assert (root.level, root.handlers) == before


def test_a_full_file_is_put_aside_and_the_oldest_goes(file: Path) -> None:
    with ProcessLog(level=logging.INFO, file=file, max_file_bytes=100, kept_files=2):
        for number in range(5):
            logger.info("number=%d %s", number, "x" * 40)
    kept = {path.name: path.read_text().partition("number=")[2][0] for path in file.parent.iterdir()}
    assert kept == {"broker.log": "4", "broker.log.1": "3", "broker.log.2": "2"}


def test_a_log_file_that_can_not_be_written_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(ConfigError, match="--log-file"):
        ProcessLog(level=logging.INFO, file=tmp_path / "taken" / "broker.log")


@pytest.mark.usefixtures("process_log")
def test_what_a_peer_sent_can_not_begin_a_line_of_its_own(file: Path) -> None:
    logger.warning("unknown topic=%s", "a\r\nforged\u2028line\x1b[2J\x85")
    assert lines(file) == [r"WARNING tanist.ha.acceptor unknown topic=a\r\nforged\u2028line\x1b[2J\x85"]


@pytest.mark.usefixtures("process_log")
def test_a_half_character_does_not_lose_the_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The log alone gets this line: pytest's own handlers would choke on it when tests run in parallel.
    root = logging.getLogger()
    own = [handler for handler in root.handlers if isinstance(handler, RotatingFileHandler)]
    monkeypatch.setattr(root, "handlers", own)
    logger.warning("unknown topic=%s", "\ud800")
    assert lines(file) == [r"WARNING tanist.ha.acceptor unknown topic=\ud800"]


@pytest.mark.usefixtures("process_log")
def test_a_traceback_is_indented_below_its_line(file: Path) -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logger.exception("flush failed")
    first, *rest = file.read_text().splitlines()
    assert first.endswith("flush failed")
    assert rest[0] == "  Traceback (most recent call last):"
    assert rest[-2:] == ["  ValueError: first", "  second"]


@pytest.mark.parametrize(
    "secret", ["hunter2", 'it\'s \\ "quoted"', "multi\nline", "\u4e2d\u6587\x85", "(.*)[a-z]+"]
)
def test_a_secret_is_masked_wherever_it_stands(process_log: ProcessLog, file: Path, secret: str) -> None:
    process_log.hide(secret)
    logger.info("plain=%s", secret)
    logger.info("repr=%r bytes=%r", secret, secret.encode())
    logger.info("in=%s", {"haSecret": secret})
    logger.info("json=%s", json.dumps({"haSecret": secret}))
    logger.info("inside=%s", f"haSecret={secret};")
    try:
        raise ValueError(secret)
    except ValueError:
        logger.exception("failed %s", secret)
    text = file.read_text(encoding="utf-8")
    masked = [re.sub(r"b?['\"]", "", line.partition("acceptor ")[2]) for line in text.splitlines()[:6]]
    assert masked == [
        "plain=******",
        "repr=****** bytes=******",
        "in={haSecret: ******}",
        "json={haSecret: ******}",
        "inside=haSecret=******;",
        "failed ******",
    ]
    assert text.endswith("  ValueError: ******\n")


def test_of_a_secret_that_begins_with_another_nothing_is_left(process_log: ProcessLog, file: Path) -> None:
    process_log.hide("horse")
    process_log.hide("horse battery")
    logger.info("secret=%s", "horse battery")
    assert lines(file) == ["INFO tanist.ha.acceptor secret=******"]


def test_a_secret_that_is_not_set_hides_nothing(process_log: ProcessLog, file: Path) -> None:
    process_log.hide("")
    logger.info("started")
    assert lines(file) == ["INFO tanist.ha.acceptor started"]


def test_the_command_writes_its_log_where_it_is_told(tmp_path: Path, file: Path) -> None:
    run = CliRunner().invoke(
        tanist,
        ["-v", "--log-file", str(file), "store", "demo", "-n", "10", "--folder", str(tmp_path / "demo")],
    )
    assert run.exit_code == 0
    assert any(line.startswith("INFO tanist.store.store store opened") for line in lines(file))
    assert "store opened" not in run.stderr


def test_a_failure_is_news_once_and_again_for_another_reason_or_after_a_success() -> None:
    failures = ToldFailures()
    assert failures.is_news("a", "refused")
    assert not failures.is_news("a", "refused")
    assert failures.is_news("b", "refused")
    assert failures.is_news("a", "no answer")
    assert failures.is_over("a")
    assert not failures.is_over("a")
    assert failures.is_news("a", "no answer")
    assert not failures.is_news("b", "refused")


def test_a_shared_file_is_found_again_after_another_process_began_a_new_one(tmp_path: Path) -> None:
    file = tmp_path / "tanist.log"
    with ProcessLog(level=logging.INFO, file=file) as log:
        log.share()
        log.hide("swordfish")
        logging.getLogger("shared").info("before")
        file.rename(tmp_path / "tanist.log.1")
        logging.getLogger("shared").info("after swordfish")
    assert "before" in (tmp_path / "tanist.log.1").read_text()
    assert "after ******" in file.read_text()


def test_sharing_changes_nothing_for_a_log_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with ProcessLog(level=logging.INFO) as log:
        log.share()
        logging.getLogger("shared").info("still there")
    assert "still there" in capsys.readouterr().err


def test_by_choice_a_line_is_an_object_with_its_values_as_fields(file: Path) -> None:
    with ProcessLog(level=logging.INFO, file=file, is_json=True) as process_log:
        process_log.hide("the secret")
        logger.info("slave joined slave=%s acked_to=%d is_new=%s", "10.0.0.7:\n40112", 8192, True)
        logger.warning("the secret is out reason=%s", "the secret")
        try:
            raise ValueError("the secret\nof two lines")
        except ValueError:
            logger.exception("it failed")
    first, second, third = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert first.pop("time")
    assert first == {
        "level": "INFO",
        "logger": "tanist.ha.acceptor",
        "event": "slave joined slave=10.0.0.7:\n40112 acked_to=8192 is_new=True",
        "slave": "10.0.0.7:\n40112",
        "acked_to": 8192,
        "is_new": True,
    }
    assert (second["event"], second["reason"]) == ("****** is out reason=******", "******")
    assert "ValueError: ******\nof two lines" in third["traceback"]


def test_whoever_started_the_process_says_how_a_line_looks_before_its_settings(file: Path) -> None:
    for told, wanted in ((None, True), (False, False)):
        with ProcessLog(level=logging.INFO, file=file, is_json=told) as process_log:
            process_log.use_json_unless_told(is_json=True)
            logger.info("started")
        last = file.read_text(encoding="utf-8").splitlines()[-1]
        assert last.startswith("{") is wanted
