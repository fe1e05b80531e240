"""Changes on their way to a controller: what arrives, where it is made, and what neither end lets through."""

import pytest

from tanist.coord import Change, Check, Create, Delete, Put
from tanist.coord.changes import MAX_COMMIT_BYTES
from tanist.coord.remote_messages import (
    MAX_BODY_BYTES,
    changes_below,
    check_remote_path,
    check_timeout,
    decode_changes,
    encode_changes,
    path_below,
)
from tanist.errors import RemoteProtocolError
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.coord import MAX_CHANGES, ChangeBody, CommitBody
from tanist.protocol.headers.coord import MAX_PATH_CHARS

_ALL_KINDS: list[Change] = [
    Create("/alive/a/10.0.0.7:10911", bytes(range(256)), is_ephemeral=True),
    Create("/主", b""),
    Put("/record", b"value", 7),
    Delete("/record", 8),
    Check("/record", 0),
    Check("/", 0),
    Check("/absent", None),
]


def test_changes_of_every_kind_arrive_as_they_were_sent() -> None:
    assert decode_changes(encode_changes(_ALL_KINDS)) == _ALL_KINDS


def test_a_commit_as_large_as_is_allowed_gets_through() -> None:
    paths = [f"/{number:03}".ljust(MAX_PATH_CHARS, "主") for number in range(MAX_CHANGES)]
    changes = [Create(path, bytes(MAX_COMMIT_BYTES // MAX_CHANGES)) for path in paths]
    assert decode_changes(encode_changes(changes)) == changes


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ([], "at least one change"),
        ([Check("/", 0)] * (MAX_CHANGES + 1), f"has {MAX_CHANGES + 1} changes"),
        ([Create("/" + "x" * MAX_PATH_CHARS, b"")], f"has {MAX_PATH_CHARS + 1} characters"),
        ([Create("/record", bytes(MAX_COMMIT_BYTES + 1))], f"hold {MAX_COMMIT_BYTES + 1} bytes"),
        ([Create("/../leader", b"")], "not . or .."),
        ([Put("/", b"", 0)], "the root is always there"),
    ],
)
def test_what_is_not_allowed_is_refused_before_it_is_sent(changes: list[Change], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        encode_changes(changes)


@pytest.mark.parametrize("path", ["record", "/../leader", "/a//b", "/a\0b"])
def test_a_path_that_can_not_be_one_is_refused_where_it_arrives(path: str) -> None:
    body = encode_body(CommitBody(changes=[ChangeBody(kind="create", path=path)]))
    with pytest.raises(ValueError, match="path="):
        decode_changes(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"changes":[]}',
        b'{"changes":[{"kind":"steal","path":"/record"}]}',
        b'{"changes":[{"kind":"put","path":"/record"}]}',
        b'{"changes":[{"kind":"delete","path":"/record"}]}',
        b'{"changes":[{"kind":"put","path":"/record","version":4294967296}]}',
        b'{"changes":[{"kind":"create","path":"/record","value":"not base64"}]}',
        b'{"changes":[' + b",".join([b'{"kind":"check","path":"/"}'] * (MAX_CHANGES + 1)) + b"]}",
        b'{"changes":[{"kind":"create","path":"/' + b"x" * MAX_PATH_CHARS + b'"}]}',
        b" " * (MAX_BODY_BYTES + 1),
    ],
)
def test_a_body_that_is_no_commit_is_the_peers_fault(body: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_changes(body)


def test_what_a_session_names_lies_below_the_root_it_is_given() -> None:
    assert path_below("/fixed", "/") == "/fixed"
    assert path_below("/fixed", "/leader") == "/fixed/leader"
    assert changes_below("/fixed", [Check("/", 0), Create("/leader", b"x", is_ephemeral=True)]) == [
        Check("/fixed", 0),
        Create("/fixed/leader", b"x", is_ephemeral=True),
    ]


@pytest.mark.parametrize("timeout_s", [0.0, 0.499, 60.001, float("nan"), -1.0])
def test_a_timeout_out_of_bounds_is_refused(timeout_s: float) -> None:
    with pytest.raises(ValueError, match="timeout_s="):
        check_timeout(timeout_s)


def test_a_path_may_be_as_long_as_the_bound() -> None:
    path = "/" + "x" * (MAX_PATH_CHARS - 1)
    assert check_remote_path(path) == path
