"""Who may come in: passwords, users, sessions, and how often somebody may guess."""

from itertools import count
from pathlib import Path

import pytest

from tanist.console.access.login_limit import FOR_ALL, PER_ADDRESS, PER_USER, WINDOW_S, LoginLimit
from tanist.console.access.passwords import MAX_PASSWORD_CHARS, hash_password, is_hash, is_password
from tanist.console.access.sessions import IDLE_S, MAX_AGE_S, SessionStore
from tanist.console.access.users import Role, User, Users, parse_users, read_users
from tanist.errors import ConfigError

SALT = bytes(16)
KEPT = hash_password("a long password", SALT)
ANN = User("ann", Role.OPERATOR, KEPT)


def test_what_is_kept_of_a_password_tells_the_right_one_from_others() -> None:
    assert "a long password" not in KEPT
    assert is_password("a long password", KEPT)
    assert not is_password("A long password", KEPT)


def test_a_password_that_is_longer_than_any_is_refused_unread() -> None:
    assert not is_password("x" * (MAX_PASSWORD_CHARS + 1), KEPT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a long password",
        "scrypt:16384:8:1:AAAA",
        "md5:16384:8:1:AAAAAAAAAAAAAAAAAAAAAA==:AAAA",
        KEPT.replace("16384", "16383"),
        KEPT.replace("16384", "1073741824"),
        KEPT.replace(":8:", ":900:"),
        KEPT[:-4],
        KEPT + "*",
    ],
)
def test_what_could_not_be_checked_or_would_cost_too_much_is_no_hash(text: str) -> None:
    assert not is_hash(text)
    assert not is_password("a long password", text)


def test_a_user_is_known_by_name_and_password() -> None:
    users = Users(ANN)
    assert users.check("ann", "a long password") is ANN
    assert users.check("ann", "another password") is None
    assert users.check("bob", "a long password") is None
    assert users.check("bob", "") is None


def test_the_password_of_a_user_is_not_shown() -> None:
    assert KEPT not in repr(ANN)


def test_a_file_of_users_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text(f"# who may log in\nann=operator:{KEPT}\nvic=viewer:{KEPT}\n")
    users = read_users(file)
    assert len(users) == 2
    found = users.find("vic")
    assert found is not None
    assert not found.is_operator


def test_a_file_without_users_lets_nobody_start(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("")
    with pytest.raises(ConfigError, match="adduser"):
        read_users(tmp_path / "users")


@pytest.mark.parametrize("line", [{"ann": KEPT}, {"ann": "root:" + KEPT}, {"a b": f"viewer:{KEPT}"}])
def test_a_line_that_makes_no_sense_is_named_and_its_secret_is_not(line: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as failure:
        parse_users(line, source="users")
    assert KEPT not in str(failure.value)


def store(**options: int) -> SessionStore:
    numbers = count()
    return SessionStore(lambda _size: f"token-{next(numbers)}", **options)


def test_a_token_finds_its_session_until_it_was_not_used_for_a_while() -> None:
    sessions = store()
    token = sessions.begin(ANN, now_s=0)
    assert sessions.find(token, now_s=IDLE_S) is not None
    assert sessions.find(token, now_s=IDLE_S * 2) is not None
    assert sessions.find(token, now_s=IDLE_S * 3 + 1) is None


def test_a_page_that_lies_open_keeps_nobody_logged_in() -> None:
    sessions = store()
    token = sessions.begin(ANN, now_s=0)
    assert sessions.find(token, now_s=IDLE_S, is_use=False) is not None
    assert sessions.find(token, now_s=IDLE_S + 1, is_use=False) is None


def test_a_session_that_is_used_all_day_ends_too() -> None:
    sessions = store()
    token = sessions.begin(ANN, now_s=0)
    for now_s in range(0, int(MAX_AGE_S), 600):
        assert sessions.find(token, now_s=now_s) is not None
    assert sessions.find(token, now_s=MAX_AGE_S + 1) is None


def test_a_token_that_was_logged_out_or_never_given_finds_nothing() -> None:
    sessions = store()
    token = sessions.begin(ANN, now_s=0)
    sessions.end(token)
    assert sessions.find(token, now_s=0) is None
    assert sessions.find("token-99", now_s=0) is None
    assert sessions.find(None, now_s=0) is None


def test_of_too_many_sessions_the_one_goes_that_was_not_used_for_longest() -> None:
    sessions = store(max_sessions=2)
    first, second = sessions.begin(ANN, now_s=0), sessions.begin(ANN, now_s=1)
    sessions.find(first, now_s=2)
    third = sessions.begin(ANN, now_s=3)
    assert [sessions.find(token, now_s=4) is not None for token in (first, second, third)] == [
        True,
        False,
        True,
    ]


def test_only_the_sessions_own_token_is_its_token() -> None:
    sessions = store()
    session = sessions.find(sessions.begin(ANN, now_s=0), now_s=0)
    assert session is not None
    assert session.is_csrf(session.csrf)
    assert not session.is_csrf("é")
    assert not session.is_csrf(None)
    assert session.csrf not in repr(session)


def test_an_address_that_guesses_waits_and_others_do_not() -> None:
    limit = LoginLimit()
    for _ in range(PER_ADDRESS):
        assert limit.wait_s("1.1.1.1", "ann", now_s=0) == 0
        limit.on_failure("1.1.1.1", "ann", now_s=0)
    assert limit.wait_s("1.1.1.1", "bob", now_s=10) == WINDOW_S - 10
    assert limit.wait_s("2.2.2.2", "ann", now_s=10) == 0
    assert limit.wait_s("1.1.1.1", "ann", now_s=WINDOW_S) == 0


def test_a_name_that_many_addresses_guess_at_waits_too() -> None:
    limit = LoginLimit()
    for number in range(PER_USER):
        limit.on_failure(f"1.1.1.{number}", "ann", now_s=0)
    assert limit.wait_s("2.2.2.2", "ann", now_s=0) > 0
    assert limit.wait_s("2.2.2.2", "bob", now_s=0) == 0


def test_all_together_wait_when_everybody_guesses() -> None:
    limit = LoginLimit()
    for number in range(FOR_ALL):
        limit.on_failure(f"address {number}", f"user {number}", now_s=0)
    assert limit.wait_s("2.2.2.2", "bob", now_s=0) > 0


def test_failures_that_are_over_are_not_remembered() -> None:
    limit = LoginLimit()
    for number in range(100):
        limit.on_failure(f"address {number}", f"user {number}", now_s=0)
    limit.on_failure("1.1.1.1", "ann", now_s=WINDOW_S)
    assert len(limit) == 3


def test_who_gets_it_right_is_forgiven_his_slips() -> None:
    limit = LoginLimit()
    for _ in range(PER_ADDRESS):
        limit.on_failure("1.1.1.1", "ann", now_s=0)
    limit.on_success("1.1.1.1")
    assert limit.wait_s("1.1.1.1", "ann", now_s=0) == 0
