"""``python -m tests.support.rocketmq``: fetch the jars and compile the programs before any test waits."""

from tests.support.rocketmq.jars import CLIENT_LINES, install, install_client, install_old_broker


def main() -> None:
    print(install().jars)
    for line in CLIENT_LINES:
        print(install_client(line).jars)
    print(install_old_broker().jars)


if __name__ == "__main__":
    main()
