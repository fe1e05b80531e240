"""What no code of the product may do, because bytes from elsewhere would become code or commands."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

BANNED_IMPORTS = frozenset({"pickle", "marshal", "shelve", "dill", "cloudpickle", "telnetlib", "pty"})
BANNED_CALLS = frozenset(
    {
        *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "tempfile.mktemp"),
        *("yaml.unsafe_load", "yaml.full_load", "yaml.load_all"),
        *("subprocess.getoutput", "subprocess.getstatusoutput", "asyncio.create_subprocess_shell"),
    }
)
BANNED_KINDS = ("os.exec", "os.spawn", "os.posix_spawn")
"""How the names of calls begin that make this process another, or start one past ``subprocess``."""


def broken_rules(text: str) -> Iterator[str]:
    """Each rule that a module breaks, with its line."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                found = {alias.name.partition(".")[0] for alias in names} & BANNED_IMPORTS
            case ast.ImportFrom(module=str(module), names=names):
                found = {module.partition(".")[0]} & BANNED_IMPORTS
                # By its bare name the call would not be known.
                found |= {name for alias in names if is_banned(name := f"{module}.{alias.name}")}
            case ast.Call():
                found = set(broken_by_call(node))
            case _:
                continue
        yield from (f"line {node.lineno}: {name}" for name in sorted(found))


def is_banned(name: str) -> bool:
    return name in BANNED_CALLS or name.startswith(BANNED_KINDS)


def broken_by_call(call: ast.Call) -> Iterator[str]:
    name = ast.unparse(call.func)
    if is_banned(name):
        yield name
    if any(word.arg == "shell" and ast.unparse(word.value) != "False" for word in call.keywords):
        yield f"{name} with a shell"
    if name == "yaml.load" and "yaml.BaseLoader" not in map(ast.unparse, call.args):
        yield "yaml.load with a loader that makes objects"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("import pickle", "pickle"),
        ("from marshal import loads", "marshal"),
        ("eval(text)", "eval"),
        ("os.system('ls')", "os.system"),
        ("from os import system", "os.system"),
        ("from os import execv as go", "os.execv"),
        ("os.execvp('ls', ['ls'])", "os.execvp"),
        ("os.spawnl(os.P_WAIT, 'ls')", "os.spawnl"),
        ("os.posix_spawn('/bin/ls', ['ls'], {})", "os.posix_spawn"),
        ("subprocess.getoutput('ls')", "subprocess.getoutput"),
        ("from subprocess import getstatusoutput", "subprocess.getstatusoutput"),
        ("asyncio.create_subprocess_shell('ls')", "asyncio.create_subprocess_shell"),
        ("subprocess.run(text, shell=True)", "subprocess.run with a shell"),
        ("yaml.load(text, yaml.Loader)", "yaml.load with a loader that makes objects"),
    ],
)
def test_each_rule_is_found(text: str, rule: str) -> None:
    assert list(broken_rules(text)) == [f"line 1: {rule}"]


def test_what_is_allowed_is_not_found() -> None:
    text = (
        "import json\nyaml.load(text, yaml.BaseLoader)\nsubprocess.run(('ip',), shell=False)\nre.compile('a')"
    )
    assert list(broken_rules(text)) == []


def test_no_module_makes_code_or_commands_of_what_it_is_given() -> None:
    modules = list(SOURCE.rglob("*.py"))
    assert len(modules) > 100
    broken = {
        str(path.relative_to(SOURCE)): rules
        for path in modules
        if (rules := list(broken_rules(path.read_text(encoding="utf-8"))))
    }
    assert broken == {}
