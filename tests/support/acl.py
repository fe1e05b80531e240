"""Signed requests, and files of access rules."""

from collections.abc import Mapping

from tanist.protocol.command import Command
from tanist.protocol.signature import ACCESS_KEY, SIGNATURE, sign

KEY, SECRET = "producer-key", "12345678"

PLAIN_ACL = f"""\
globalWhiteRemoteAddresses:
  - 10.10.103.*

accounts:
  - accessKey: {KEY}
    secretKey: {SECRET}
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - Denied=DENY
      - Both=PUB|SUB
      - Written=PUB
      - Read=SUB
    groupPerms:
      # A comment.
      - DeniedGroup=DENY

  - accessKey: operator-key
    secretKey: {SECRET}
    whiteRemoteAddress: 192.168.1.*
    admin: true
"""


def signed(
    code: int,
    ext: Mapping[str, str] | None = None,
    *,
    body: bytes = b"",
    access_key: str = KEY,
    secret: str = SECRET,
) -> Command:
    """A request with the signature that a client with these keys gives it."""
    fields = {**(ext or {}), ACCESS_KEY: access_key}
    return Command.request(code, ext={**fields, SIGNATURE: sign(fields, body, secret)}, body=body)
