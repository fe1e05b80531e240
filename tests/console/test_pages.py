"""The console in a real browser, beside a real pair: log in, see who is read, kill the master, watch."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support import partners
from tests.support.console_process import ConsoleProcess
from tests.support.fixed_pair import FixedPair

# As root there is no sandbox to be had; the rest keeps it from asking the world for anything.
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_PATIENCE_MS = 20_000


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=partners.chromium(), args=_FLAGS)
        yield browser
        browser.close()


@pytest.mark.partner("chromium")
def test_who_looks_sees_the_slave_be_read_when_the_master_dies(tmp_path: Path, browser: Browser) -> None:
    with FixedPair(tmp_path) as pair, ConsoleProcess(tmp_path, pair.names.address) as console:
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        wrongs: list[str] = []
        page.on("pageerror", lambda error: wrongs.append(str(error)))
        page.on("console", lambda told: wrongs.append(told.text) if told.type == "error" else None)
        log_in(page, console, "/slave-consumption")

        live = page.locator("#live")
        expect(live).to_contain_text("The master is read.", timeout=_PATIENCE_MS)
        expect(live).to_contain_text("Nothing has happened yet")
        pair.kill_master()
        # Nobody loads the page again: it is told.
        expect(live).to_contain_text("Consumers read from the slave", timeout=_PATIENCE_MS)
        expect(live).to_contain_text(
            "the master is gone: its conditions held in all checks", timeout=_PATIENCE_MS
        )

        keyboard_reaches_every_page(page)
        for path in ("/", "/brokers", "/replication", "/topics", "/groups", "/audit"):
            page.goto(console.address.rstrip("/") + path)
            expect(page.locator("h1")).to_be_visible()
            page.screenshot(path=tmp_path / f"{path.strip('/') or 'overview'}.png", full_page=True)
        is_too_wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        page.set_viewport_size({"width": 390, "height": 800})
        for path in ("/", "/slave-consumption", "/brokers"):
            page.goto(console.address.rstrip("/") + path)
            assert page.evaluate(is_too_wide) is False, path
        assert wrongs == []


def log_in(page: Page, console: ConsoleProcess, target: str) -> None:
    page.goto(console.address.rstrip("/") + target)
    page.get_by_label("Name").fill(console.user)
    page.get_by_label("Password").fill(console.password)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{target}")


def keyboard_reaches_every_page(page: Page) -> None:
    """The first stop leads past the bar, the next ones are the pages."""
    page.reload()
    reached: list[str] = []
    for _ in range(10):
        page.keyboard.press("Tab")
        reached.append(str(page.evaluate("document.activeElement.getAttribute('href')")))
    assert reached[0] == "#content"
    assert {"/", "/brokers", "/replication", "/slave-consumption", "/topics", "/groups"} <= set(reached)
