"""Access rules against whatever a file or a peer may hold."""

import contextlib
import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from tanist.broker.acl.addresses import parse_patterns
from tanist.broker.acl.needs import Needs
from tanist.broker.acl.plain_acl import parse_plain_acl
from tanist.broker.acl.rules import AccessRules, make_rules
from tanist.broker.settings import BrokerSettings
from tanist.errors import MQError
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.signature import SIGNATURE, is_signed, sign
from tests.support.acl import KEY, PLAIN_ACL, signed

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_EXT = st.dictionaries(st.one_of(_TEXT, st.sampled_from(["topic", "b", "consumerGroup", "group"])), _TEXT)
# A NUL at the end of a key of HMAC makes no difference.
_SECRET = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
_CODES = st.one_of(st.sampled_from(list(RequestCode)), st.integers(0, 32767))


def known_rules() -> AccessRules:
    found = parse_plain_acl(PLAIN_ACL.encode())
    assert found is not None
    return make_rules(found)


RULES = known_rules()
NEEDS = Needs(BrokerSettings(), lambda offset: "Read" if offset % 2 else None)


@given(
    st.one_of(
        st.binary(max_size=300),
        _TEXT.map(str.encode),
        _TEXT.map(lambda text: PLAIN_ACL.encode() + text.encode()),
    )
)
def test_a_file_is_read_or_refused_and_nothing_else(text: bytes) -> None:
    with contextlib.suppress(ValueError):
        found = parse_plain_acl(text)
        if found is not None:
            make_rules(found)


@given(st.one_of(_TEXT, st.text("0123456789abcf.:*-{},", max_size=40)))
def test_a_pattern_is_read_or_refused_and_nothing_else(text: str) -> None:
    with contextlib.suppress(ValueError):
        for pattern in parse_patterns(text):
            pattern.matches(b"\x0a\0\0\1")


@given(st.ip_addresses(), st.ip_addresses())
def test_an_address_means_itself_alone(address: ipaddress.IPv4Address, other: ipaddress.IPv4Address) -> None:
    (pattern,) = parse_patterns(str(address))
    assert pattern.matches(address.packed)
    assert pattern.matches(other.packed) == (address == other)


@given(_CODES, _EXT, st.binary(max_size=100))
def test_nobody_gets_in_without_a_right_signature(code: int, ext: dict[str, str], body: bytes) -> None:
    request = Command.request(code, ext={**ext, "AccessKey": KEY}, body=body)
    assert RULES.refusal(request, b"\x0a\0\0\1", NEEDS) == "wrong signature"


@given(_CODES, _EXT, st.binary(max_size=100))
def test_any_signed_request_is_allowed_or_refused_with_a_reason(
    code: int, ext: dict[str, str], body: bytes
) -> None:
    with contextlib.suppress(MQError):
        reason = RULES.refusal(signed(code, ext, body=body), b"\x0a\0\0\1", NEEDS)
        assert reason is None or reason.startswith(("it lacks", "request code"))


@given(_EXT, st.binary(max_size=100), _SECRET, _SECRET)
def test_a_signature_is_right_for_its_own_secret_alone(
    ext: dict[str, str], body: bytes, secret: str, other: str
) -> None:
    carried = {**ext, SIGNATURE: sign(ext, body, secret)}
    assert is_signed(carried, body, secret)
    assert is_signed(carried, body, other) == (secret == other)
