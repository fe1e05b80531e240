"""Writes docs/reference/commands.md from the commands themselves.

python scripts/reference_commands.py           writes it
python scripts/reference_commands.py --check   tells whether it is current, by its exit code
"""

import sys
from pathlib import Path

import click

from tanist.cli.admin import SUBJECTS, admin
from tanist.cli.commands.unsupported import MISSING
from tanist.cli.exit_codes import MEANINGS
from tanist.cli.main import tanist

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
_INTRODUCTION = """# Commands

Written by `scripts/reference_commands.py` from the code; change it there. The commands of `tanist admin` come
first, and [admin.md](../admin.md) tells how to use them; [the others](#tanist) are below.

Every command of `tanist admin` has `--json` and `-h`. Those that only look have `-i SECONDS`, or
`--interval SECONDS` where `-i` is something else, to look again and again. `-n`, the name servers,
can be given once as `NAMESRV_ADDR`.
"""


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION, _access(), _exit_codes()]
    for subject in SUBJECTS:
        commands = [command for command in subject.COMMANDS if not command.hidden]
        if commands:
            heading = (subject.__doc__ or "").strip().splitlines()[0].rstrip(".")
            parts.append(f"## {heading.replace('``', '`')}\n")
            parts += [text for command in commands for text in _command(command, "")]
    return "\n".join([*parts, _missing(), *_others()])


def _others() -> list[str]:
    """All that is beside ``tanist admin``."""
    context = click.Context(tanist)
    parts = ["## tanist\n", _help(tanist), _options(tanist, has_json=True)]
    for name in tanist.list_commands(context):
        command = tanist.get_command(context, name)
        if command is not None and command is not admin:
            parts += _command(command, "tanist ")
    return parts


def _access() -> str:
    return "## Access, before the name of the command\n\n" + _options(admin)


def _exit_codes() -> str:
    rows = "\n".join(f"| {code:d} | {code.name} | {meaning} |" for code, meaning in MEANINGS.items())
    return f"## Exit codes\n\n| code | name | meaning |\n| --- | --- | --- |\n{rows}\n"


def _missing() -> str:
    rows = "\n".join(f"| `{each.name}` | {each.subject} | {each.instead} |" for each in MISSING)
    return (
        "## Refused\n\nThese commands of `mqadmin` end with exit code 10: Tanist has not what they need.\n\n"
        f"| command | is about | instead |\n| --- | --- | --- |\n{rows}\n"
    )


def _command(command: click.Command, before: str) -> list[str]:
    name = f"{before}{command.name}"
    # That those of admin have it is said once for all.
    has_json = name.startswith("tanist ")
    if isinstance(command, click.Group):
        own = [f"### {name}\n", _help(command), _options(command, has_json=has_json)]
        return own + [
            text for _, each in sorted(command.commands.items()) for text in _command(each, f"{name} ")
        ]
    return [f"### {name}\n", _help(command), _options(command, has_json=has_json)]


def _help(command: click.Command) -> str:
    paragraphs = (command.help or "").replace("\b\n", "").strip().split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in paragraphs) + "\n"


def _options(command: click.Command, *, has_json: bool = False) -> str:
    rows: list[str] = []
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            if parameter.hidden or ("--json" in parameter.opts and not has_json):
                continue
            names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
            rows.append(f"| {names} | {'yes' if parameter.required else ''} | {_told(parameter)} |")
        else:
            rows.append(f"| `{parameter.make_metavar(click.Context(command))}` | yes | |")
    if not rows:
        return ""
    return "| option | needed | |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"


def _told(option: click.Option) -> str:
    parts = [option.help or ""]
    if isinstance(option.type, click.Choice):
        parts.append("One of " + ", ".join(map(str, option.type.choices)) + ".")
    if option.envvar is not None and option.envvar != "NAMESRV_ADDR":
        parts.append(f"From `{option.envvar}`.")
    if isinstance(option.show_default, str):
        parts.append(f"Without it {option.show_default}.")
    is_plain = isinstance(option.default, int | float | str) and not isinstance(option.default, bool)
    if is_plain and abs(option.default if isinstance(option.default, int) else 0) < 1 << 40:
        parts.append(f"Without it {option.default}.")
    return " ".join(part for part in parts if part).replace("|", "\\|")


def main() -> None:
    """Write the page, or compare it."""
    text = page()
    if "--check" in sys.argv[1:]:
        is_current = PAGE.exists() and PAGE.read_text() == text
        print("current" if is_current else f"{PAGE} is old: run python scripts/reference_commands.py")
        sys.exit(not is_current)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
