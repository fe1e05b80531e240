"""Builds the C twins of what Python does with messages, where that can be done. Tanist works without them.

A C compiler of the machine is taken if there is one, else the one that the ``ziglang`` package brings.
"""

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = (
    Path("src/tanist/protocol/_native.c"),
    Path("src/tanist/ha/_track.c"),
    Path("src/tanist/broker/_engine.c"),
    Path("src/tanist/spark/_native.c"),
)
FLAGS = ("-O2", "-shared", "-fPIC")


class CustomBuildHook(BuildHookInterface[Any]):
    """What hatchling calls before it packs a wheel or an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        root = Path(self.root)
        for source in SOURCES:
            built = build(root / source)
            if built is not None:
                build_data["pure_python"] = False
                build_data["infer_tag"] = True
                build_data["artifacts"].append(str(built.relative_to(root)))


def build(source: Path) -> Path | None:
    """Compile a module next to its source; None, with a line that says so, if nobody here can."""
    target = source.with_name(source.stem + sysconfig.get_config_var("EXT_SUFFIX"))
    include = f"-I{sysconfig.get_paths()['include']}"
    # What an older source was built into must not be taken for this one.
    target.unlink(missing_ok=True)
    said = "no C compiler was found"
    for compiler in _compilers():
        command = [*compiler, *FLAGS, include, "-o", str(target), str(source)]
        compiled = subprocess.run(command, capture_output=True, text=True, check=False)
        if compiled.returncode == 0:
            return target
        said = compiled.stderr.strip().splitlines()[-1] if compiled.stderr.strip() else "it failed"
    print(f"{source} was not built, Python does its work: {said}", file=sys.stderr)
    return None


def _compilers() -> Iterator[list[str]]:
    for name in ("cc", "gcc", "clang"):
        if (path := shutil.which(name)) is not None:
            yield [path]
    if find_spec("ziglang") is not None:
        yield [sys.executable, "-m", "ziglang", "cc"]
