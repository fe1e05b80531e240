import subprocess
import sys
from pathlib import Path

from tanist.spark.shipping import pack, shipped_package


def test_what_is_shipped_is_all_that_a_worker_imports(tmp_path: Path) -> None:
    """In a Python that has nothing else of ours, as a worker has."""
    package = pack(Path(__file__).parents[3] / "src", tmp_path / "tanist.zip")
    code = (
        f"import sys; sys.path[:] = [{str(package)!r}, *(p for p in sys.path if not p.endswith('src'))]\n"
        "import tanist.spark.archive.from_cluster as job; print(job.__file__)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.startswith(str(package))


def test_it_is_packed_once() -> None:
    assert shipped_package() == shipped_package()
    assert Path(shipped_package()).is_file()
