"""The options of a data source: known ones only, each checked before anything is read."""

from collections.abc import Collection, Iterable, Mapping

from tanist.spark.errors import BadOption, UnknownName

_TRUE_OR_FALSE = {"true": True, "false": False}


class Options:
    """What a user gave, whatever its case. Spark hands all options over as text."""

    def __init__(self, given: Mapping[str, str], known: Collection[str]) -> None:
        spelt = {name.lower(): name for name in known}
        for name in given:
            if name.lower() not in spelt:
                raise UnknownName("option", name, known)
        self._given = {spelt[name.lower()]: value for name, value in given.items()}

    def has(self, name: str) -> bool:
        return name in self._given

    def text(self, name: str) -> str | None:
        return self._given.get(name)

    def flag(self, name: str, *, default: bool) -> bool:
        value = self._given.get(name)
        if value is None:
            return default
        if value.lower() not in _TRUE_OR_FALSE:
            raise BadOption(name, value, "true or false")
        return _TRUE_OR_FALSE[value.lower()]

    def number(self, name: str, *, least: int, default: int) -> int:
        value = self._given.get(name)
        if value is None:
            return default
        if not value.removeprefix("-").isdecimal() or int(value) < least:
            raise BadOption(name, value, f"a whole number of {least} or more")
        return int(value)

    def choice(self, name: str, allowed: Iterable[str], *, default: str) -> str:
        """One of some words, in the case in which they are given here."""
        value = self._given.get(name, default)
        words = {word.lower(): word for word in allowed}
        if value.lower() not in words:
            raise BadOption(name, value, " or ".join(words.values()))
        return words[value.lower()]

    def words(self, name: str) -> tuple[str, ...]:
        """Words separated by commas; none if the option was not given."""
        value = self._given.get(name)
        if value is None:
            return ()
        words = tuple(word.strip() for word in value.split(","))
        if not all(words):
            raise BadOption(name, value, "names separated by commas")
        return words
