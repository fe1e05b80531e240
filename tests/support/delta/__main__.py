"""``python -m tests.support.delta``: fetch Delta's jars before any test."""

from tests.support.delta import install

if __name__ == "__main__":
    print(install())
