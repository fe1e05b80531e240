"""``make run``'s script: both servers come up, and stop together."""

import signal
import subprocess
import sys
from pathlib import Path

from tanist.protocol import Command, RequestCode, ResponseCode
from tests.support.wire import Wire

SCRIPT = Path(__file__).parents[2] / "scripts" / "run.py"


def test_a_name_server_and_a_broker_run_until_they_are_told_to_stop() -> None:
    with subprocess.Popen([sys.executable, SCRIPT], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            told = next(line for line in lines if line.startswith("Point"))
            address = told.partition("name server ")[2].partition(". ")[0]
            with Wire(address) as wire:
                answer = wire.ask(Command.request(RequestCode.GET_BROKER_CLUSTER_INFO))
            assert answer.code == ResponseCode.SUCCESS
            assert b"brokerAddrs" in bytes(answer.body)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
