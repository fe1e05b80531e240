"""The sample configs of ``conf``, with ports and folders of a test in the place of theirs."""

import re
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from tanist.client import Message, MQError, SendStatus
from tanist.config import parse_properties
from tanist.sync import Producer
from tests.support.process import ForeignProcess
from tests.support.rocketmq.cluster import free_broker_port, free_port
from tests.support.served import tanist_command
from tests.support.site import wait_until

CONF = Path(__file__).parents[2] / "conf"
_STATE = "/var/lib/tanist"
_ZOOKEEPER = re.compile(r"zk://[^/]*/tanist")
_SMALL = "mappedFileSizeCommitLog=1048576\n"
_KINDS = ("namesrv", "controller", "broker")
_START_S = 60.0


@dataclass(frozen=True, slots=True)
class Running:
    """The processes of one sample."""

    name_server: str
    metrics: dict[str, str]
    """Where each process is measured, by the name of its file."""

    def exported(self) -> set[str]:
        """The names of all metrics that any of them exports, with samples or without."""
        found: set[str] = set()
        for address in self.metrics.values():
            with urlopen(address, timeout=10) as answer:
                text = answer.read().decode()
            found |= set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
        return found


def sample_files(name: str) -> list[Path]:
    """Those of one sample, in the order in which they are to be started."""
    files = sorted((CONF / name).glob("*.conf"))
    return sorted(files, key=lambda file: _KINDS.index(_kind(file)))


@contextmanager
def running_sample(name: str, folder: Path, *, zookeeper: str = "") -> Generator[Running]:
    """Every file of a sample as a process that serves, those of one kind started together."""
    files = sample_files(name)
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    ports = _ports(texts)
    with ExitStack() as stack:
        measured: dict[str, str] = {}
        for kind in _KINDS:
            started: list[ForeignProcess] = []
            for file in (each for each in files if _kind(each) == kind):
                text = _ZOOKEEPER.sub(zookeeper, _with_ports(texts[file], ports))
                text = text.replace(_STATE, str(folder)).replace("haSecret=\n", f"haSecret={'s' * 40}\n")
                config = folder / file.name
                config.parent.mkdir(parents=True, exist_ok=True)
                config.write_text(text + _SMALL * (kind == "broker"), encoding="utf-8")
                process = ForeignProcess(file.stem, tanist_command(kind, "-c", config), directory=folder)
                started.append(stack.enter_context(process))
                port = parse_properties(text, source=file)["metricsPromExporterPort"]
                measured[file.stem] = f"http://127.0.0.1:{port}/metrics"
            for process in started:
                process.wait_for_output(" serves at ", timeout_s=_START_S)
                assert "without effect" not in process.output()
        yield Running(f"127.0.0.1:{ports['9876']}", measured)


def send_one(name_server: str) -> None:
    """Until a message is where the settings promise it to be, on the slaves too."""
    with Producer(group="samples", namesrv=name_server) as producer:

        def is_sent() -> bool:
            try:
                return producer.send(Message("SampleTopic", b"...")).status is SendStatus.OK
            except MQError:
                return False

        wait_until(is_sent, pause_s=0.1)


def _kind(file: Path) -> str:
    return next(kind for kind in _KINDS if file.stem.startswith(kind))


def _ports(texts: dict[Path, str]) -> dict[str, int]:
    """A free port for each that a file has of its own."""
    ports: dict[str, int] = {}
    for file, text in texts.items():
        settings = parse_properties(text, source=file)
        if _kind(file) == "broker":
            ports[settings["listenPort"]] = free_broker_port()
            ports[settings["haListenPort"]] = ports[settings["listenPort"]] + 1
        else:
            ports[settings["listenPort"]] = free_port()
            # A controller inside a name server has a port of its own.
            if peer := settings.get("controllerDLegerPeers"):
                ports[peer.rpartition(":")[2]] = free_port()
        ports[settings["metricsPromExporterPort"]] = free_port()
    return ports


def _with_ports(text: str, ports: dict[str, int]) -> str:
    places = re.compile(r"(?<=[=:])(" + "|".join(ports) + r")\b")
    return places.sub(lambda found: str(ports[found[1]]), text)
