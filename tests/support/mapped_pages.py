"""What the system was told of the pages of mapped files."""

from pathlib import Path


def pages_alone(path: Path) -> int:
    """How many bytes of a mapped file Linux does not read ahead of."""
    alone, size_bytes = 0, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *rest = line.split()
        if "-" in first:
            start, end = (int(edge, 16) for edge in first.split("-"))
            size_bytes = end - start if line.endswith(str(path)) else 0
        elif first == "VmFlags:" and "rr" in rest:
            alone += size_bytes
    return alone
