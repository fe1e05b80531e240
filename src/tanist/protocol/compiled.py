"""``native``: the codecs in C, or None where they could not be built or are not wanted."""

from tanist.compiled import is_wanted

try:
    from tanist.protocol import _native
except ImportError:
    native = None
else:
    native = _native if is_wanted else None
