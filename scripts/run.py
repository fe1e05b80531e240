"""What ``make run`` does: a name server and a broker on this machine, until Ctrl-C.

Their files lie in ``build/run``. A port that is taken is replaced by a free one, and said so.
"""

import signal
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "run"
TANIST = ROOT / ".venv" / "bin" / "tanist"
NAME_SERVER_PORT = 9876
BROKER_PORT = 10911
FAST_PORT_DISTANCE = 2


def main() -> int:
    HOME.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    name_port = free_port(NAME_SERVER_PORT)
    broker_port = free_port(BROKER_PORT, BROKER_PORT - FAST_PORT_DISTANCE)
    processes: list[subprocess.Popen[str]] = []
    try:
        processes.append(start("namesrv", listenPort=name_port, kvConfigPath=HOME / "kvConfig.json"))
        address = f"127.0.0.1:{name_port}"
        processes.append(
            start("broker", listenPort=broker_port, namesrvAddr=address, storePathRootDir=HOME / "store")
        )
        print(f"Point RocketMQ clients at the name server {address}. Ctrl-C stops both.", flush=True)
        return processes[-1].wait()
    except KeyboardInterrupt:
        return 0
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
            process.wait()


def start(command: str, **settings: object) -> "subprocess.Popen[str]":
    """Start a server with these settings, and print the line that says that it serves."""
    config = HOME / f"{command}.conf"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    # In a session of its own: Ctrl-C is for us, who stop the servers in order.
    process = subprocess.Popen(
        [TANIST, "--log-file", HOME / f"{command}.log", command, "-c", config],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        sys.exit(process.wait())
    print(line, end="", flush=True)
    return process


def free_port(wanted: int, *also: int) -> int:
    """The port we want, if it is free and the others it brings along; else any that is."""
    if all(map(is_free, (wanted, *also))):
        return wanted
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found = int(probe.getsockname()[1])
    print(f"Port {wanted} is taken; {found} is used instead.", flush=True)
    return found


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
