"""Prints a software bill of materials: all that Tanist is made of or made with, as CycloneDX 1.6 in JSON.

python scripts/sbom.py              all of it
python scripts/sbom.py --shipped    without what only its development needs

Versions are those of constraints.txt, licences what the installed packages say of themselves. Files of others
that are kept in the tree come with their hashes. The same tree gives the same bytes.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
VENDOR = ROOT / "src" / "tanist" / "console" / "web" / "static" / "vendor"
_DEVELOPMENT = "dev"
_NAME_CHARS = 60
"""A licence field that is longer is the licence's text and not its name."""

Component = dict[str, Any]


def bill(*, is_shipped_only: bool = False) -> dict[str, Any]:
    """The whole document."""
    tanist = distribution("tanist")
    components = [*_packages(tanist), *_vendored()]
    if is_shipped_only:
        components = [each for each in components if each["scope"] != "excluded"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"pkg:pypi/tanist@{tanist.version}",
                "name": "tanist",
                "version": tanist.version,
                **_licences(tanist),
            }
        },
        "components": components,
    }


def _packages(tanist: Distribution) -> Iterator[Component]:
    """One of each pin. It is required, or optional with an extra, or excluded from what is shipped."""
    extras = set(tanist.metadata.get_all("Provides-Extra") or ()) - {_DEVELOPMENT}
    required, shipped = _needed(tanist, set()), _needed(tanist, extras)
    for pin in CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        if pin.startswith("#"):
            continue
        name, _, version = pin.partition("==")
        key = _key(name)
        scope = "required" if key in required else "optional" if key in shipped else "excluded"
        reference = f"pkg:pypi/{key}@{version}"
        yield {
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "version": version,
            "scope": scope,
            "purl": reference,
            **_licences(_installed(name)),
        }


def _needed(package: Distribution, extras: set[str]) -> set[str]:
    """What a package needs here with these extras, and what that needs."""
    found: set[str] = set()
    waiting = [(package, frozenset(extras))]
    while waiting:
        needing, its_extras = waiting.pop()
        for requirement in map(Requirement, needing.requires or ()):
            key = _key(requirement.name)
            is_wanted = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *its_extras)
            )
            if is_wanted and key not in found:
                found.add(key)
                if (there := _installed(requirement.name)) is not None:
                    waiting.append((there, frozenset(requirement.extras)))
    return found


def _vendored() -> Iterator[Component]:
    """The files of npm's packages that the console's pages load."""
    for name, entry in json.loads((VENDOR / "versions.json").read_text(encoding="utf-8")).items():
        package = f"pkg:npm/{entry['package']}@{entry['version']}"
        yield {
            "type": "file",
            "bom-ref": f"{package}#{entry['path']}",
            "name": f"{entry['package']}/{entry['path']}",
            "version": entry["version"],
            "scope": "optional",
            "purl": f"{package}#{entry['path']}",
            "hashes": [
                {"alg": "SHA-256", "content": hashlib.sha256((VENDOR / name).read_bytes()).hexdigest()}
            ],
            "licenses": [{"license": {"id": entry["licence"]}}],
        }


def _licences(package: Distribution | None) -> dict[str, Any]:
    """What a package says of its licence; nothing where it is not installed, or says nothing."""
    if package is None:
        return {}
    said = package.metadata.get_all
    if expressions := said("License-Expression"):
        return {"licenses": [{"expression": expressions[0]}]}
    name = "".join(said("License") or ()).strip().partition("\n")[0]
    named = [
        each.rpartition(" :: ")[2] for each in said("Classifier") or () if each.startswith("License :: OSI")
    ]
    names = [name] if 0 < len(name) <= _NAME_CHARS else named
    return {"licenses": [{"license": {"name": each}} for each in names]} if names else {}


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    print(json.dumps(bill(is_shipped_only="--shipped" in sys.argv[1:]), indent=2))
