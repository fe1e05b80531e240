"""``python -m tests.support.zookeeper``: fetch the jars before any test."""

from tests.support.zookeeper import install

if __name__ == "__main__":
    print(install())
