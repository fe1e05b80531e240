"""``python -m tests.support.rocketmq.attacked``: all attacks on a pair of Apache RocketMQ, and what was seen.

A SYNC_MASTER whose sends wait for one slave (``inSyncReplicas=2``), one real slave, and a log whose first
file is gone. It takes some ten minutes, most of which RocketMQ's own intervals are.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from operator import ne
from pathlib import Path

import msgspec

from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.sync import ExchangeHAInfo
from tests.support.attacked import JEWELS, HaStatus, Master, try_attack, wait_until
from tests.support.fake_master import LIES, play_on_slave
from tests.support.ha_attacks import ATTACKS, Ground
from tests.support.relay import Relay
from tests.support.requests import send_request
from tests.support.rocketmq.cluster import Broker, RocketMQ
from tests.support.wire import Wire

_FILE_BYTES = 1 << 20
_BODY_BYTES = 64 << 10
_HOST = "127.0.0.1"
_PATIENCE_S = 25.0
"""RocketMQ drops who is silent for 20 s."""

_MASTER = {
    "brokerRole": "SYNC_MASTER",
    "inSyncReplicas": 2,
    "slaveTimeout": 1000,
    "mappedFileSizeCommitLog": _FILE_BYTES,
}


def main(names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, RocketMQ(Path(folder)) as rocketmq:
        _fill(rocketmq, Path(folder) / "store")
        broker = rocketmq.start_broker(store_dir=Path(folder) / "store", properties=_MASTER)
        with Relay(_ha_address(broker)) as cable:
            slave = _start_slave(rocketmq, cable)
            master = Master(broker.address, _ha_address(broker))
            master.wait_in_step()
            for attack in ATTACKS:
                if not names or attack.name in names:
                    ground = _ground(master, cable)
                    seen = try_attack(master, cable, attack, ground, patience_s=_PATIENCE_S)
                    _print(attack.name, asdict(seen) | _log_lines(broker, attack.name))
            if not names or "fake master" in names:
                slave.stop()
                _fool_slaves(rocketmq, master, cable)
                cable.lead_to(master.ha_address)
                slave = _start_slave(rocketmq, cable)
                master.wait_in_step()
            if not names or "redeployed master" in names:
                _redeploy(rocketmq, broker, slave, cable)
            master.close()


def _fill(rocketmq: RocketMQ, store_dir: Path) -> None:
    """Make a log of some files, and take the first one away as retention would."""
    broker = rocketmq.start_broker(store_dir=store_dir, properties={"mappedFileSizeCommitLog": _FILE_BYTES})
    with Wire(broker.address) as wire:
        for _ in range(40):
            wire.ask(send_request(JEWELS.ljust(_BODY_BYTES, b".")))
    broker.stop()
    (store_dir / "commitlog" / f"{0:020}").unlink()


def _start_slave(rocketmq: RocketMQ, cable: Relay, *, store_dir: Path | None = None) -> Broker:
    properties = {
        "brokerRole": "SLAVE",
        "brokerId": 1,
        "haMasterAddress": cable.address,
        "mappedFileSizeCommitLog": _FILE_BYTES,
    }
    slave = rocketmq.start_broker(store_dir=store_dir, properties=properties)
    # With its setting alone a slave of 5.3.3 finds no master: it reads it before it has where to keep it.
    # This is how a master tells a slave where it is.
    header = ExchangeHAInfo(master_ha_address=cable.address)
    with Wire(slave.address) as wire:
        answer = wire.ask(Command.request(RequestCode.EXCHANGE_BROKER_HA_INFO, header))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
    return slave


def _ground(master: Master, cable: Relay) -> Ground:
    return Ground(log_start=_FILE_BYTES, log_end=master.status().log_end, session=bytes(cable.calls[0][:64]))


def _fool_slaves(rocketmq: RocketMQ, master: Master, cable: Relay) -> None:
    """Tell each lie to a slave of its own: not all of them are well afterwards."""
    for lie in LIES:
        cable.lead_to(master.ha_address)
        slave = _start_slave(rocketmq, cable)
        master.wait_in_step()
        seen = play_on_slave(slave.address, slave.process.pid, cable, lie, patience_s=_PATIENCE_S)
        cable.lead_to(master.ha_address)
        _print(f"fake master: {lie.name}", asdict(seen) | {"in_step_again_after_s": _healed_after_s(master)})
        slave.kill()


def _healed_after_s(master: Master) -> float | None:
    try:
        return master.wait_in_step()
    except AssertionError:
        return None


def _redeploy(rocketmq: RocketMQ, old: Broker, slave: Broker, cable: Relay) -> None:
    """Put an empty master in the old one's place; the slave follows it by itself."""
    held = Master(slave.address, "").status().client["maxOffset"]
    old.stop()
    broker = rocketmq.start_broker(properties=_MASTER)
    cable.lead_to(_ha_address(broker))
    master = Master(broker.address, _ha_address(broker))
    _print("redeployed master: its old slave comes", _linked(master))
    _print("redeployed master: a send", asdict(master.send()))
    slave.stop()
    slave = _start_slave(rocketmq, cable, store_dir=slave.store_dir)
    _print("redeployed master: the old slave is restarted", _linked(master))
    while master.status().log_end <= held:
        master.send(JEWELS.ljust(_BODY_BYTES, b"!"))
    seconds = master.wait_in_step()
    _print("redeployed master: its log has grown beyond the old one", {"in_step_after_s": seconds})
    _print("redeployed master: bytes that differ", _differing_bytes(broker, slave))
    slave.stop()
    wait_until(lambda: not master.status().links)
    _print("redeployed master: the old slave is stopped, a send", asdict(master.send()))
    _start_slave(rocketmq, cable)
    _print("redeployed master: a new slave is in step after s", master.wait_in_step())
    _print("redeployed master: a send", asdict(master.send()))
    _print("redeployed master: its log", _log_lines(broker, "the end"))
    master.close()


def _linked(master: Master) -> HaStatus:
    wait_until(lambda: bool(master.status().links))
    return master.status()


def _differing_bytes(master: Broker, slave: Broker) -> int:
    """How many bytes of the slave's log are not the master's."""
    count = 0
    for copy in sorted((slave.store_dir / "commitlog").iterdir()):
        original = master.store_dir / "commitlog" / copy.name
        other = original.read_bytes() if original.exists() else bytes(_FILE_BYTES)
        count += sum(map(ne, copy.read_bytes(), other))
    return count


def _log_lines(broker: Broker, name: str) -> dict[str, object]:
    """What the broker's own log says about its slaves, and how much it said in all."""
    lines = (broker.process.output_file.parent / "rocketmq.log").read_text(errors="replace").splitlines()
    behind = [line for line in lines if "slave fall behind" in line.lower()]
    warnings = [line for line in lines if " WARN " in line or " ERROR " in line]
    return {"log_lines": len(lines), "warnings": len(warnings), "fall_behind": behind[-1:], "at": name}


def _ha_address(broker: Broker) -> str:
    return f"{_HOST}:{broker.ha_port}"


def _print(title: str, seen: object) -> None:
    print(title, msgspec.json.encode(seen, enc_hook=str).decode(), sep="\t", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
