"""What the indexes keep of a message's properties: the hash of its tag, and its keys."""

from functools import lru_cache

from tanist.model.java_hash import java_hash
from tanist.model.property_names import KEYS, TAGS, UNIQ_KEY
from tanist.protocol.properties import property_finder

KEY_SEPARATOR = " "

find_unique_key = property_finder(UNIQ_KEY)
find_tag = property_finder(TAGS)
find_keys = property_finder(KEYS)


# A topic has few tags and many messages.
@lru_cache(maxsize=1024)
def tags_code(tag: str | bytes | None) -> int:
    """The number that a consume queue keeps for a tag: its Java hash, with sign; 0 for no tag."""
    if not tag:
        return 0
    return java_hash(tag if isinstance(tag, str) else tag.decode("utf-8", "replace"))


def index_keys(properties: bytes | memoryview) -> list[str]:
    """The keys that a message with this property string is found by: its unique id, each word of KEYS."""
    raw = bytes(properties)
    keys: list[str] = []
    if unique_key := find_unique_key(raw):
        keys.append(unique_key.decode("utf-8", "replace"))
    if words := find_keys(raw):
        keys += filter(None, words.decode("utf-8", "replace").split(KEY_SEPARATOR))
    return keys
