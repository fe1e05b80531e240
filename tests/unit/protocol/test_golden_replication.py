"""Replication as Apache RocketMQ's own master and slave spoke it."""

from typing import Any

import pytest

from tanist.model.epochs import Epoch
from tanist.model.offsets import LogOffset
from tanist.protocol import ha_autoswitch, ha_classic
from tanist.protocol.ha_stream import BodyPart
from tests.support import golden

CASES = golden.load("replication")
CLASSIC = ["classic_empty_slave", "classic_slave_with_a_prefix"]
AUTO_SWITCH = CASES["auto_switch"]


def _frames(frames: list[str]) -> list[bytes]:
    return [bytes.fromhex(frame) for frame in frames]


@pytest.mark.behaviour("S1-51")
@pytest.mark.parametrize("name", CLASSIC)
def test_the_reports_of_a_classic_slave(name: str) -> None:
    decoder = ha_classic.ReportDecoder()
    reports: list[int] = []
    for frame in _frames(CASES[name]["slave_frames"]):
        report = decoder.feed(frame)
        assert report is not None
        assert ha_classic.encode_report(report) == frame
        reports.append(report)
    assert reports == sorted(reports)
    assert reports[-1] == CASES[name]["log_end"]


@pytest.mark.behaviour("S1-65")
@pytest.mark.parametrize("name", CLASSIC)
def test_the_frames_of_a_classic_master(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    decoder = ha_classic.TransferDecoder()
    position: int | None = None
    for frame in _frames(case["master_frames"]):
        header, *parts = decoder.feed(frame)
        assert isinstance(header, ha_classic.TransferHeader)
        assert ha_classic.encode_transfer_header(*header) == frame[:12]
        assert position in (None, header.log_offset)
        assert header.size_bytes <= case["batch_bytes"]
        assert b"".join(part.view for part in parts if isinstance(part, BodyPart)) == frame[12:]
        assert len(parts) == (1 if header.size_bytes else 0)
        position = header.log_offset + header.size_bytes
    assert position == case["log_end"]


@pytest.mark.behaviour("S2-12")
def test_the_frames_of_an_auto_switch_slave() -> None:
    frames = _frames(AUTO_SWITCH["slave_frames"])
    handshake, *reports = ha_autoswitch.SlaveFrameDecoder().feed(b"".join(frames))
    assert isinstance(handshake, ha_autoswitch.SlaveHandshake)
    assert handshake == ha_autoswitch.SlaveHandshake(AUTO_SWITCH["slave_broker_id"])
    assert ha_autoswitch.encode_slave_handshake(handshake) == frames[0]
    for report, frame in zip(reports, frames[1:], strict=True):
        assert isinstance(report, ha_autoswitch.SlaveReport)
        assert ha_autoswitch.encode_slave_report(report.log_offset) == frame
    assert reports[-1] == ha_autoswitch.SlaveReport(AUTO_SWITCH["log_end"])


@pytest.mark.behaviour("S2-8")
@pytest.mark.behaviour("S2-9")
def test_the_handshake_of_an_auto_switch_master() -> None:
    frame = _frames(AUTO_SWITCH["master_frames"])[0]
    (handshake,) = ha_autoswitch.MasterFrameDecoder().feed(frame)
    assert isinstance(handshake, ha_autoswitch.MasterHandshake)
    epochs = tuple(Epoch(epoch, LogOffset(start)) for epoch, start in AUTO_SWITCH["epochs"])
    assert handshake == ha_autoswitch.MasterHandshake(
        LogOffset(AUTO_SWITCH["log_end"]), epochs[-1].epoch, epochs
    )
    assert ha_autoswitch.encode_master_handshake(handshake) == frame


@pytest.mark.behaviour("S2-11")
def test_the_frames_of_an_auto_switch_master() -> None:
    handshake, *frames = _frames(AUTO_SWITCH["master_frames"])
    decoder = ha_autoswitch.MasterFrameDecoder()
    decoder.feed(handshake)
    position = 0
    for frame in frames:
        header, *parts = decoder.feed(frame)
        assert isinstance(header, ha_autoswitch.TransferHeader)
        assert ha_autoswitch.encode_transfer_header(header) == frame[:36]
        assert header.log_offset == position
        assert [header.epoch, header.epoch_start] in AUTO_SWITCH["epochs"]
        assert header.confirmed_to == AUTO_SWITCH["log_end"]
        assert b"".join(part.view for part in parts if isinstance(part, BodyPart)) == frame[36:]
        position += header.size_bytes
    assert position == AUTO_SWITCH["log_end"]


def test_rocketmq_labels_the_last_frame_of_an_epoch_with_the_next_one() -> None:
    handshake, *frames = _frames(AUTO_SWITCH["master_frames"])
    decoder = ha_autoswitch.MasterFrameDecoder()
    headers = [
        event for event in decoder.feed(handshake + b"".join(frames)) if not isinstance(event, BodyPart)
    ][1:]
    early = [
        header
        for header in headers
        if isinstance(header, ha_autoswitch.TransferHeader) and header.log_offset < header.epoch_start
    ]
    assert [(header.epoch, header.log_offset + header.size_bytes) for header in early] == [(3, 725)]
