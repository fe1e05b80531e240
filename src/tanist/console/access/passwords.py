"""Passwords, kept as what scrypt makes of them. The cost stands in the text, so it can grow later."""

import base64
import hashlib
import hmac

_SCHEME = "scrypt"
_COST, _BLOCK_SIZE, _PARALLELISM = 1 << 14, 8, 1
_MAX_COST, _MAX_BLOCK_SIZE, _MAX_PARALLELISM = 1 << 17, 16, 4
_MEMORY_BYTES = 512 << 20
_KEY_BYTES = 32
SALT_BYTES = 16
MAX_PASSWORD_CHARS = 1_024
"""More is refused unread: whoever guesses must not choose how much we work."""


def hash_password(password: str, salt: bytes, *, cost: int = _COST) -> str:
    """What is kept of a password: ``scrypt:cost:block:parallel:salt:key``. The salt has to be random."""
    key = _derive(password, salt, cost, _BLOCK_SIZE, _PARALLELISM)
    return f"{_SCHEME}:{cost}:{_BLOCK_SIZE}:{_PARALLELISM}:{_text(salt)}:{_text(key)}"


def is_hash(text: str) -> bool:
    """Whether this is something that ``is_password`` can compare with."""
    return _parse(text) is not None


def is_password(password: str, kept: str) -> bool:
    """Whether this is the password of which that was kept. Takes some 50 ms on purpose."""
    parsed = _parse(kept)
    if parsed is None or len(password) > MAX_PASSWORD_CHARS:
        return False
    cost, block_size, parallelism, salt, key = parsed
    return hmac.compare_digest(_derive(password, salt, cost, block_size, parallelism), key)


def _parse(text: str) -> tuple[int, int, int, bytes, bytes] | None:
    scheme, *rest = text.split(":")
    if scheme != _SCHEME or len(rest) != 5 or not all(part.isdecimal() for part in rest[:3]):
        return None
    cost, block_size, parallelism = map(int, rest[:3])
    try:
        salt, key = (base64.b64decode(part, validate=True) for part in rest[3:])
    except ValueError:
        return None
    is_sound = (
        1 < cost <= _MAX_COST
        and cost & (cost - 1) == 0
        and 0 < block_size <= _MAX_BLOCK_SIZE
        and 0 < parallelism <= _MAX_PARALLELISM
        and len(key) == _KEY_BYTES
        and len(salt) >= SALT_BYTES
    )
    return (cost, block_size, parallelism, salt, key) if is_sound else None


def _derive(password: str, salt: bytes, cost: int, block_size: int, parallelism: int) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=cost,
        r=block_size,
        p=parallelism,
        maxmem=_MEMORY_BYTES,
        dklen=_KEY_BYTES,
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
