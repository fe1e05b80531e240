"""What a client's version number says of it. Pure.

RocketMQ counts its versions by their place in an enum, two for each release: the snapshot and the release.
"""

from tanist.protocol.codes import Language, Version

_V4_9_0 = 393
_V5_2_0 = 453
_RELEASES_PER_MINOR = 10


def version_name(version: int) -> str:
    """The release that a number stands for, as far back as clients of today go.

    >>> version_name(409), version_name(479), version_name(478)
    ('4.9.8', '5.3.3', '5.3.3-SNAPSHOT')
    """
    if version < _V4_9_0 - 1:
        return f"before 4.9 ({version})"
    major, minor, first = (4, 9, _V4_9_0) if version < Version.V5_0_0 - 1 else (5, 0, int(Version.V5_0_0))
    number, is_snapshot = divmod(version - first + 1, 2)[0], (version - first) % 2 == 1
    minor, patch = minor + number // _RELEASES_PER_MINOR, number % _RELEASES_PER_MINOR
    return f"{major}.{minor}.{patch}{'-SNAPSHOT' if is_snapshot else ''}"


def ignores_broadcast_reset(language: str, version: int) -> bool:
    """Whether this is a Java client that does not write one queue's offset to its file, and so does not move.

    Releases 4.9.8 and 5.2.0 are the first of their lines that write it.
    """
    if language != Language.JAVA.name:
        return False
    return version < Version.V4_9_8 or Version.V5_0_0 - 1 <= version < _V5_2_0
