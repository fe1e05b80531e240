import asyncio
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress

import pytest

from tanist.client import ClientClosed
from tanist.sync.loop_thread import LoopThread

DEADLINE_S = 30.0


def test_work_is_done_in_the_thread_and_its_errors_come_back() -> None:
    thread = LoopThread("client")
    thread.start()
    try:
        assert thread.apply(threading.get_ident) != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            thread.apply(lambda: 1 // 0)
    finally:
        thread.close()


def test_closing_lets_nobody_wait_for_ever() -> None:
    def call_until_closed(thread: LoopThread) -> None:
        with suppress(ClientClosed):
            while True:
                thread.call(asyncio.sleep(0))

    def wait_until_closed(thread: LoopThread) -> None:
        with suppress(ClientClosed):
            thread.call(asyncio.Event().wait())

    for _ in range(30):
        thread = LoopThread("client")
        thread.start()
        callers = [
            threading.Thread(target=call, args=(thread,), daemon=True)
            for call in (call_until_closed, wait_until_closed) * 3
        ]
        for caller in callers:
            caller.start()
        thread.close()
        for caller in callers:
            caller.join(DEADLINE_S)
        assert not any(caller.is_alive() for caller in callers)


def test_a_call_from_the_loops_own_thread_is_refused() -> None:
    thread = LoopThread("client")
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="would wait for itself"):
            thread.apply(lambda: thread.call(asyncio.sleep(0)))
    finally:
        thread.close()


def test_a_forked_process_is_told_that_its_copy_of_a_client_is_not_open() -> None:
    script = """
        import asyncio, os, sys
        from tanist.client import ClientClosed
        from tanist.sync.loop_thread import LoopThread
        thread = LoopThread("client")
        thread.start()
        child = os.fork()
        if child == 0:
            try:
                thread.call(asyncio.sleep(0))
            except ClientClosed:
                thread.close()
                os._exit(17)
            os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        thread.call(asyncio.sleep(0))
        thread.close()
        sys.exit(code)
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)]
    assert subprocess.run(command, timeout=DEADLINE_S, check=False).returncode == 17
