"""``python -m tests.support.rocketmq``: fetch the jars, compile and rehearse the programs before any test."""

from tests.support.rocketmq.jars import CLIENT_LINES, install, install_client, install_old_broker
from tests.support.rocketmq.rehearsal import rehearse


def main() -> None:
    print(install().jars)
    for line in CLIENT_LINES:
        print(install_client(line).jars)
    print(install_old_broker().jars)
    rehearse()


if __name__ == "__main__":
    main()
