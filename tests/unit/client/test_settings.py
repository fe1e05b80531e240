import socket
from typing import Any

import pytest

from tanist.client import settings
from tanist.client.errors import InvalidArgument
from tanist.client.settings import ClientSettings, Credentials, local_address, make_client_id, make_settings


def settings_of(**changes: Any) -> ClientSettings:
    arguments: dict[str, Any] = {
        "namesrv": "127.0.0.1:9876",
        "credentials": None,
        "tls": None,
        "timeout_s": 3.0,
        "instance": None,
    }
    return make_settings(**(arguments | changes))


@pytest.mark.parametrize("namesrv", ["a:1;b:2", "a:1; b:2", ["a:1", "b:2"], ("a:1", "b:2")])
def test_several_name_servers_come_as_one_text_or_as_a_sequence(namesrv: Any) -> None:
    assert settings_of(namesrv=namesrv).namesrv == ("a:1", "b:2")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("namesrv", value) for value in ("", "host", "host:", ":9876", "host:0", "host:99999", [], 5, [5])),
        *(("timeout_s", value) for value in (0, -1, "3", None)),
        ("credentials", ("key", "secret")),
        *(("tls", value) for value in (True, "tls")),
        ("instance", ""),
        ("instance", 5),
        ("instance", "a/../b"),
        ("tls", True),
        ("tls", {"tls_enable": True}),
    ],
)
def test_a_wrong_argument_is_named(argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        settings_of(**{argument: value})
    assert refusal.value.argument == argument


def test_the_secret_is_never_shown() -> None:
    credentials = Credentials("key", "secret-word", "token-word")
    assert "-word" not in repr(credentials)
    assert "-word" not in repr(settings_of(credentials=credentials))


@pytest.mark.parametrize("given", [("", "s"), ("k", ""), (None, "s"), ("k", 5), ("k", "s", 5)])
def test_credentials_are_texts(given: Any) -> None:
    with pytest.raises(InvalidArgument):
        Credentials(*given)


@pytest.mark.parametrize("token", ["", 5])
def test_a_security_token_is_a_text(token: Any) -> None:
    with pytest.raises(InvalidArgument, match="security_token"):
        Credentials("key", "secret", token)


def test_two_clients_of_one_process_have_different_ids() -> None:
    settings = settings_of()
    assert make_client_id(settings) != make_client_id(settings)


def test_a_client_with_an_instance_keeps_its_id_from_start_to_start() -> None:
    assert make_client_id(settings_of(instance="billing-1")) == "127.0.0.1@billing-1"


def test_a_name_is_not_looked_up_where_the_event_loop_would_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up: list[str] = []
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *, type: int, flags: int = 0) -> Any:  # noqa: A002
        if not flags & socket.AI_NUMERICHOST:
            looked_up.append(host)
        return real(host, port, type=type, flags=flags | socket.AI_NUMERICHOST)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert local_address("127.0.0.1:9876") == "127.0.0.1"
    monkeypatch.setattr(settings, "_FAR_AWAY", "127.0.0.1")
    assert local_address("mq.example.org:9876") == "127.0.0.1"
    assert looked_up == []


@pytest.mark.parametrize("namesrv", ["a..b:9876", "[::1]:9876", "[no address]:9876"])
def test_a_client_has_an_id_whatever_its_name_server_is_called(namesrv: str) -> None:
    assert make_client_id(settings_of(namesrv=namesrv, instance="one")).endswith("@one")


@pytest.mark.behaviour("S3-7")
def test_routes_are_asked_for_and_brokers_are_told_of_a_client_every_30_s() -> None:
    chosen = settings_of()
    assert (chosen.route_poll_s, chosen.heartbeat_s) == (30.0, 30.0)
