"""The signature by which an access key vouches for a request.

It covers the values of the ext fields, sorted by name, and the body; nothing else of the header.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping

SIGNATURE = "Signature"


def sign(ext: Mapping[str, str], body: bytes | memoryview, secret: str) -> str:
    """The signature of a request whose ``ext`` holds its access key already. Compare in constant time."""
    names = sorted((name for name in ext if name != SIGNATURE), key=_utf16_order)
    signer = hmac.new(secret.encode(), "".join(ext[name] for name in names).encode(), hashlib.sha1)
    signer.update(body)
    return base64.b64encode(signer.digest()).decode()


def _utf16_order(name: str) -> bytes:
    # Java compares UTF-16 code units: characters outside the first plane sort before U+E000.
    return name.encode("utf-16-be")
