"""The tests here need the packages of the extra. Where they are missing one test is left, which says so."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pyarrow") else ["test_[!_]*.py"]
