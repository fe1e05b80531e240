"""What Spark jobs wrote down: a folder of files, of which each is shown as what it is."""

import asyncio
import os
from pathlib import Path

import pytest

from tanist.console import certificates
from tanist.console.certificates import CertificateDesk
from tanist.console.errors import Refused, Unknown
from tanist.console.views.epoch_timeline import epoch_timeline
from tanist.console.views.replication import EpochRow
from tests.support.clocks import FakeClock

_CERTIFICATE = (
    '{"version": 1, "logStart": 0, "logEnd": 4096, "blockBytes": 1048576, "root": "ab12", '
    '"madeAt": "2026-11-18T09:00:00Z", "stores": ["/a", "/b"]}'
)


@pytest.fixture
def desk(tmp_path: Path) -> CertificateDesk:
    (tmp_path / "audit.json").write_text(_CERTIFICATE)
    (tmp_path / "report.json").write_text('{"isEqual": false, "rows": 7}')
    (tmp_path / "broken.json").write_text('{"isEqual":')
    (tmp_path / "other.txt").write_text("x")
    for number, name in enumerate(("broken.json", "report.json", "audit.json")):
        os.utime(tmp_path / name, (number, number))
    return CertificateDesk(tmp_path, FakeClock())


def test_files_are_listed_the_newest_first_as_what_they_are(desk: CertificateDesk) -> None:
    rows = desk.list().results
    assert [(row.name, row.kind, row.level.value) for row in rows] == [
        ("audit.json", "certificate", "good"),
        ("report.json", "result", "bad"),
        ("broken.json", "unreadable", "warn"),
    ]
    assert (rows[0].stores, rows[0].fields["root"]) == (["/a", "/b"], "ab12")


def test_a_page_that_a_job_drew_is_listed_and_handed_out(desk: CertificateDesk, tmp_path: Path) -> None:
    (tmp_path / "lag.html").write_text("<svg></svg>")
    row = next(row for row in desk.list().results if row.name == "lag.html")
    assert (row.kind, row.fields) == ("page", {})
    assert desk.page("lag.html") == b"<svg></svg>"
    for name in ("audit.json", "other.txt", "../lag.html", "none.html"):
        with pytest.raises(Unknown):
            desk.page(name)


def test_only_a_store_that_the_certificate_names_is_read(
    desk: CertificateDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    async def run(_path: Path, store: str) -> object:
        ran.append(store)
        return type("Told", (), {"holds": False, "reason": "another root"})()

    monkeypatch.setattr(certificates, "_run_verify", run)
    for name, store in (("audit.json", "/etc"), ("report.json", "/a")):
        with pytest.raises(Refused):
            asyncio.run(desk.verify(name, store))
    with pytest.raises(Unknown):
        asyncio.run(desk.verify("../audit.json", "/a"))
    assert "DOES NOT HOLD" in asyncio.run(desk.verify("audit.json", "/a"))
    assert ran == ["/a"]
    assert desk.list().results[0].level.value == "bad"


def test_a_verdict_is_of_the_file_that_was_checked_and_not_of_its_name(
    desk: CertificateDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(path: Path, store: str) -> object:
        if store == "/b":
            os.utime(path, (9, 9))
        return type("Told", (), {"holds": True, "reason": "same root"})()

    monkeypatch.setattr(certificates, "_run_verify", run)
    asyncio.run(desk.verify("audit.json", "/a"))
    assert [verdict.store for verdict in desk.find("audit.json").verdicts] == ["/a"]
    os.utime(tmp_path / "audit.json", (7, 7))
    assert desk.find("audit.json").verdicts == []
    with pytest.raises(Refused, match="anew"):
        asyncio.run(desk.verify("audit.json", "/b"))


def test_one_file_that_can_not_be_read_does_not_hide_the_others(
    desk: CertificateDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep.json").write_text('{"a":' + "[" * 100_000 + "]" * 100_000 + "}")
    (tmp_path / "loop.json").symlink_to("loop.json")
    read = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        if path.name == "report.json":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    kinds = {row.name: row.kind for row in desk.list().results}
    assert kinds == {
        **dict.fromkeys(("broken.json", "report.json", "deep.json"), "unreadable"),
        "audit.json": "certificate",
    }


def test_a_store_that_is_not_there_is_told_as_the_command_says_it(desk: CertificateDesk) -> None:
    with pytest.raises(Refused, match="/a"):
        asyncio.run(desk.verify("audit.json", "/a"))


def test_epochs_are_drawn_as_long_as_what_they_wrote_and_none_is_lost() -> None:
    rows = [
        EpochRow(epoch=1, start=0, end=10, size_bytes=10, share=0.01),
        EpochRow(epoch=2, start=10, end=None, size_bytes=990, share=0.99),
    ]
    drawn = epoch_timeline(rows)
    assert drawn.count("<rect") == 2
    assert 'class="open"' in drawn
    assert "epoch 1: log offsets 0 to 10" in drawn
    assert epoch_timeline([]).count("<rect") == 0
