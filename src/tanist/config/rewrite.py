"""Changes single settings in the text of a config file and leaves all the rest as somebody wrote it."""

from collections.abc import Mapping

from tanist.config.properties import encode_property, logical_lines, natural_lines, parse_properties


def with_settings(text: str, changes: Mapping[str, str], *, source: object) -> str:
    """The text with these values, each where its key stands last, or at the end if it stands nowhere.

    RocketMQ writes the file anew with every key there is, and all that people had noted in it is lost.
    """
    rest = dict(changes)
    lines = natural_lines(text)
    for places, line in reversed(list(logical_lines(text))):
        (key,) = parse_properties(line, source=source) or ("",)
        if key not in changes:
            continue
        # Of a key that is named twice only the last line counts: the others go.
        fresh = [encode_property(key, rest.pop(key)) + "\n"] if key in rest else []
        lines[places.start : places.stop] = fresh
    if lines and rest:
        last = lines.pop().rstrip("\r\n")
        lines.append(f"{last}\n")
        if last.endswith("\\"):
            # It may go on with the next line, which then must be an empty one.
            lines.append("\n")
    return "".join([*lines, *(encode_property(key, value) + "\n" for key, value in rest.items())])
