"""Where the access rules are read from, and when."""

import errno
import os
from pathlib import Path

import pytest

from tanist.broker.acl.files import AclFiles
from tanist.broker.settings import BrokerSettings
from tanist.errors import ConfigError


def write(path: Path, access_key: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"accounts: [{{accessKey: {access_key}, secretKey: 12345678}}]")


def files_of(**settings: str | Path) -> AclFiles:
    return AclFiles(BrokerSettings(**{key: str(value) for key, value in settings.items()}))  # pyright: ignore[reportArgumentType]


def keys_in(files: AclFiles) -> set[str] | None:
    rules = files.load_changed()
    return None if rules is None else set(rules.accounts)


def test_the_file_and_the_folder_of_rocketmqs_home_are_read(tmp_path: Path) -> None:
    write(tmp_path / "conf" / "plain_acl.yml", "default-file")
    write(tmp_path / "conf" / "acl" / "one.yml", "first-file")
    write(tmp_path / "conf" / "acl" / "team" / "two.yaml", "second-file")
    write(tmp_path / "conf" / "acl" / "notes.txt", "no-file")
    write(tmp_path / "conf" / "acl" / ".hidden.yml", "no-file")
    write(tmp_path / "conf" / "acl" / ".copies" / "one.yml", "no-file")
    write(tmp_path / "conf" / "tools.yml", "no-file")
    assert keys_in(files_of(rocketmq_home=tmp_path)) == {"default-file", "first-file", "second-file"}


def test_the_home_is_the_environments_unless_a_key_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a" / "conf" / "plain_acl.yml", "environment")
    write(tmp_path / "b" / "conf" / "plain_acl.yml", "setting")
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path / "a"))
    assert keys_in(files_of()) == {"environment"}
    assert keys_in(files_of(rocketmq_home=tmp_path / "b")) == {"setting"}


@pytest.mark.parametrize("place", ["rules.yml", "rules"])
def test_a_path_of_ones_own_goes_before_the_home(tmp_path: Path, place: str) -> None:
    write(tmp_path / "conf" / "plain_acl.yml", "default-file")
    write(tmp_path / "rules.yml", "own-rules")
    write(tmp_path / "rules" / "any.yml", "own-rules")
    assert keys_in(files_of(rocketmq_home=tmp_path, acl_config_path=tmp_path / place)) == {"own-rules"}


def test_rules_that_nobody_told_the_place_of_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROCKETMQ_HOME", raising=False)
    with pytest.raises(ConfigError, match=r"aclConfigPath.*set rocketmqHome"):
        files_of()


def test_files_are_read_when_one_has_changed_come_or_gone(tmp_path: Path) -> None:
    file, other = tmp_path / "conf" / "plain_acl.yml", tmp_path / "conf" / "acl" / "other.yml"
    write(file, "first-key")
    files = files_of(rocketmq_home=tmp_path)
    assert keys_in(files) == {"first-key"}
    assert keys_in(files) is None
    write(file, "longer-first-key")
    assert keys_in(files) == {"longer-first-key"}
    write(other, "other-key")
    assert keys_in(files) == {"longer-first-key", "other-key"}
    other.unlink()
    assert keys_in(files) == {"longer-first-key"}
    assert keys_in(files) is None


def test_a_file_of_the_same_size_and_time_in_the_place_of_another_is_seen(tmp_path: Path) -> None:
    file, new = tmp_path / "rules.yml", tmp_path / "new"
    write(file, "the-old-key")
    files = files_of(acl_config_path=file)
    assert keys_in(files) == {"the-old-key"}
    write(new, "the-new-key")
    stamp = file.stat()
    os.utime(new, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    new.replace(file)
    assert keys_in(files) == {"the-new-key"}


def test_a_broken_file_is_named_once(tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text("accounts: [")
    files = files_of(acl_config_path=file)
    with pytest.raises(ConfigError, match=r"rules\.yml: line 1 is no YAML.*; use a file like"):
        files.load_changed()
    assert keys_in(files) is None
    write(file, "mended-key")
    assert keys_in(files) == {"mended-key"}


def test_an_empty_file_beside_others_is_passed_over_and_alone_refused(tmp_path: Path) -> None:
    file = tmp_path / "conf" / "plain_acl.yml"
    file.parent.mkdir()
    file.touch()
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"plain_acl\.yml: there is no account.*aclEnable=false"):
            files_of(rocketmq_home=tmp_path).load_changed()
        write(tmp_path / "conf" / "acl" / "one.yml", "first-key")
        assert keys_in(files_of(rocketmq_home=tmp_path)) == {"first-key"}
        (tmp_path / "conf" / "acl" / "one.yml").unlink()
        file.unlink(missing_ok=True)


def test_a_file_that_can_not_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "rules" / "folder.yml").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"folder\.yml: Is a directory"):
        files_of(acl_config_path=tmp_path / "rules").load_changed()


def test_a_file_that_could_not_be_read_is_read_once_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rules.yml"
    write(file, "the-old-key")
    files = files_of(acl_config_path=file)
    assert keys_in(files) == {"the-old-key"}
    write(file, "the-newer-key")

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuse)
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"rules\.yml: Permission denied"):
                files.load_changed()
    assert keys_in(files) == {"the-newer-key"}
    assert keys_in(files) is None


def test_an_access_key_in_two_files_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "conf" / "plain_acl.yml", "twice-key")
    write(tmp_path / "conf" / "acl" / "one.yml", "twice-key")
    assert keys_in(files_of(rocketmq_home=tmp_path)) == {"twice-key"}
    assert "access_keys=twice-key" in caplog.text
