"""What is imported by whom: a broken import where Spark looks for formats breaks all of its formats."""

import subprocess
import sys

import pytest


def imported_by(statement: str, *, besides: str) -> set[str]:
    """The modules that a statement brings into a process that has some already."""
    code = f"import sys; {besides}; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["pyspark_commitlog", "pyspark_rocketmq"])
def test_a_module_where_spark_looks_imports_nothing_that_spark_has_not(name: str) -> None:
    spark_has = "import pyspark.sql.datasource, pyspark.sql.types"

    assert imported_by(f"import {name}", besides=spark_has) == {name}


def test_the_command_line_and_the_package_import_neither_spark_nor_arrow() -> None:
    found = imported_by("import tanist.cli.main, tanist.spark", besides="pass")

    assert "tanist.spark" in found
    assert {name.partition(".")[0] for name in found}.isdisjoint(
        {"pyspark", "py4j", "pyarrow", "numpy", "pandas"}
    )
