"""The console in a real browser, over clusters of ``tanist up``: a story a mode, and a picture of each page.

The pictures are kept in pytest's cache, ``.pytest_cache/d/console-pages``, for whoever changes a page.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import encode_body
from tanist.protocol.headers.offsets import UpdateConsumerOffsetRequest
from tanist.up.plan import Mode
from tests.support import partners
from tests.support.site import wait_until
from tests.support.up_process import UpProcess
from tests.support.wire import Wire

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
_PATIENCE_MS = 60_000
_TOPIC, _GROUP, _KEY = "OrderTopic", "billing", "o-17"
_PAGES = "/ /brokers /replication /slave-consumption /topics /groups /messages /dead-letters /resets /alarms"
# What a reader who does not see the page, or a label that is clicked, depends on.
_FLAWS = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  const fields = document.querySelectorAll("input:not([type=hidden]), select, textarea");
  const isNamed = (each) =>
    each.getAttribute("aria-label") || [...each.labels].some((label) => label.textContent.trim());
  return [
    ...(document.querySelectorAll("h1").length === 1 ? [] : ["not one h1"]),
    ...ids.filter((id, place) => ids.indexOf(id) !== place).map((id) => `id ${id} twice`),
    ...[...fields].filter((each) => !isNamed(each)).map((each) => `no name: ${each.outerHTML}`),
    ...[...document.querySelectorAll("button, a")]
      .filter((each) => !each.textContent.trim())
      .map((each) => `no text: ${each.outerHTML}`),
  ];
}"""
_IS_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=_PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=partners.chromium(), args=_FLAGS)
        yield browser
        browser.close()


@pytest.mark.takes(30)
@pytest.mark.partner("chromium")
def test_an_operator_sends_finds_resets_kills_the_master_and_sees_the_switch(
    tmp_path: Path, browser: Browser, pytestconfig: pytest.Config
) -> None:
    assert pytestconfig.cache is not None
    pictures = pytestconfig.cache.mkdir("console-pages")
    with UpProcess(tmp_path) as cluster:
        page, wrongs = open_page(browser, cluster)
        log_in(page, cluster, "/topics")
        message = send_and_find(page)
        plan = reset_and_undo(page, cluster.master)
        kill_the_master(page)
        keyboard_reaches_every_page(page)
        take_pictures(
            page,
            pictures,
            {
                "overview": "/",
                "brokers": "/brokers",
                "broker": f"/brokers/{cluster.slave}",
                "replication": "/replication",
                "slave-consumption": "/slave-consumption",
                "topics": "/topics",
                "topic": f"/topics/{_TOPIC}",
                "groups": "/groups",
                "group": f"/groups/{_GROUP}",
                "messages": f"/messages?topic={_TOPIC}&begin=-1h",
                "message": message,
                "dead-letters": "/dead-letters",
                "dead-letters-of": f"/dead-letters/{_GROUP}",
                "resets": "/resets",
                "reset": plan,
                "alarms": "/alarms",
                "machine": "/machine",
                "audit": "/audit",
            },
        )
        assert wrongs == []


@pytest.mark.takes(25)
@pytest.mark.partner("chromium")
def test_who_watches_the_replication_sees_a_controller_choose_another_master(
    tmp_path: Path, browser: Browser
) -> None:
    with UpProcess(tmp_path, mode=Mode.AUTO_SWITCH) as cluster:
        page, wrongs = open_page(browser, cluster)
        log_in(page, cluster, "/replication")
        wait_until(lambda: len(group_of(page)["syncStateSet"] or ()) == 2, pause_s=0.1)
        before = group_of(page)
        (slave,) = {replica["address"] for replica in before["replicas"]} - {before["master"]}
        expect(page.locator("#live")).to_contain_text("Lease")
        lag_chart_lives(page, before["name"])
        theme_is_chosen_and_kept(page)
        kill_without_javascript(browser, cluster)
        # Nobody loads the page again: it is told.
        change = page.get_by_role("row", name=f"{slave} slave master")
        expect(change).to_be_visible()
        after = group_of(page)
        assert (after["master"], after["epoch"] > before["epoch"]) == (slave, True)
        # Who is dead is not shown as a second master.
        expect(page.locator(".node strong")).to_have_text(["Master 0", "Gone"])
        expect(change.get_by_role("cell").last).to_have_text(str(after["epoch"]))
        expect(page.locator("dt:text-is('Epoch') + dd")).to_have_text(str(after["epoch"]))
        expect(page.locator("svg.timeline g.open text").first).to_have_text(str(after["epoch"]))
        assert wrongs == []


def open_page(browser: Browser, cluster: UpProcess) -> tuple[Page, list[str]]:
    """A page at the console of a cluster, and what goes wrong in it from now on."""
    page = browser.new_page(viewport={"width": 1280, "height": 860}, base_url=cluster.console)
    page.set_default_timeout(_PATIENCE_MS)
    wrongs: list[str] = []
    page.on("pageerror", lambda error: wrongs.append(str(error)))
    page.on("console", lambda told: wrongs.append(told.text) if told.type == "error" else None)
    return page, wrongs


def group_of(page: Page) -> dict[str, Any]:
    """The only group, as the console sees its replication."""
    return page.request.get("/api/v1/replication").json()["groups"][0]


def lag_chart_lives(page: Page, group: str) -> None:
    """The chart of lags is drawn, names the group with its slave, and goes on by itself."""
    figure = page.locator("figure").filter(has=page.locator('[data-columns="lag bytes *"]'))
    expect(figure.locator("canvas")).to_be_visible()
    expect(figure.locator(".empty")).to_be_hidden()
    expect(figure.locator(".u-legend")).to_contain_text(group)
    drawn = "document.querySelector('[data-columns=\"lag bytes *\"] canvas').toDataURL()"
    page.wait_for_function(f"before => {drawn} !== before", arg=page.evaluate(drawn))


def theme_is_chosen_and_kept(page: Page) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(background)
    page.get_by_role("button", name="light / dark").click()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark
    page.get_by_role("button", name="light / dark").click()
    assert page.evaluate(background) == light


def kill_without_javascript(browser: Browser, cluster: UpProcess) -> None:
    """Somebody whose browser runs no scripts reads every page, and kills the master."""
    page = browser.new_page(base_url=cluster.console, java_script_enabled=False)
    page.set_default_timeout(_PATIENCE_MS)
    log_in(page, cluster, "/")
    for path in _PAGES.split():
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        expect(page.get_by_role("link", name="Overview")).to_be_visible()
        expect(page.get_by_role("button", name="light / dark")).to_be_hidden()
    page.get_by_role("link", name="This machine").click()
    page.get_by_role("button", name="Kill the master").click()
    expect(page.get_by_role("status")).to_contain_text("is killed")


def log_in(page: Page, cluster: UpProcess, target: str) -> None:
    page.goto(target)
    page.get_by_label("Name").fill(cluster.user)
    page.get_by_label("Password").fill(cluster.password)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{target}")


def send_and_find(page: Page) -> str:
    """Make a topic, send a message to it, and search for that by its key; the path of its page."""
    page.get_by_text("Make a topic, or change one").click()
    page.get_by_label("Name", exact=True).fill(_TOPIC)
    page.get_by_label("Queues on each broker").fill("1")
    # The next page listens only after the console has seen the topic: it is told all the same that it is old.
    held: list[Route] = []
    page.route("**/events?*", lambda route: held.append(route))  # noqa: PLW0108 - a built-in takes no mark
    page.get_by_role("button", name="Make it so").click()
    expect(page.get_by_role("status")).to_contain_text(f"{_TOPIC} has 1 queue on")
    wait_until(lambda: page.request.get(f"/api/v1/topics/{_TOPIC}").ok and bool(held), pause_s=0.1)
    held[-1].continue_()
    page.unroute("**/events?*")
    page.get_by_role("link", name=_TOPIC).click()
    page.get_by_text("Send a test message").click()
    page.get_by_label("Keys, separated by blanks").fill(_KEY)
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_role("status")).to_contain_text("SEND_OK")

    page.get_by_role("link", name="Messages", exact=True).click()
    page.get_by_label("Topic").fill(_TOPIC)
    page.get_by_label("Key", exact=True).fill(_KEY)
    page.keyboard.press("Enter")
    page.locator("tbody a").click()
    expect(page.locator("pre.body")).to_have_text("a test message")
    return page.url


def reset_and_undo(page: Page, master: str) -> str:
    """Move a group that has consumed the message, look at it first, and plan the way back."""
    with Wire(master) as wire:
        for command in (
            Command.request(
                RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
                body=encode_body(SubscriptionGroupConfig(group_name=_GROUP)),
            ),
            Command.request(
                RequestCode.UPDATE_CONSUMER_OFFSET,
                UpdateConsumerOffsetRequest(
                    consumer_group=_GROUP, topic=_TOPIC, queue_id=0, consumer_offset=QueueOffset(1)
                ),
            ),
        ):
            assert wire.ask(command).code == ResponseCode.SUCCESS
    page.goto(f"/resets?group={_GROUP}&topic={_TOPIC}")
    page.get_by_label("To", exact=True).fill("earliest")
    page.get_by_role("button", name="Plan").click()
    expect(page.locator("#live")).to_contain_text("Nothing is changed yet")
    expect(page.locator("#live .figures div").first).to_contain_text("1 messages")
    plan = page.url
    confirm = page.get_by_label("to say that you mean it")
    confirm.fill(_GROUP)
    # What was asked for before he typed comes now, and leaves alone what he typed.
    with page.expect_response(plan):
        page.evaluate("document.activeElement.blur()")
        page.evaluate("document.body.dispatchEvent(new CustomEvent('view-changed'))")
    page.wait_for_load_state("networkidle")
    expect(confirm).to_have_value(_GROUP)
    page.get_by_role("button", name="Move the group").click()
    page.get_by_role("button", name="Plan the way back").click()
    expect(page.locator(".lead").first).to_contain_text("back")
    page.get_by_label("to say that you mean it").fill(_GROUP)
    page.get_by_role("button", name="Move the group").click()
    expect(page.get_by_role("status")).to_contain_text("applied")
    return plan


def kill_the_master(page: Page) -> None:
    page.get_by_role("link", name="This machine").click()
    page.get_by_role("button", name="Kill the master").click()
    expect(page.get_by_role("status")).to_contain_text("broker-1 is killed")
    page.get_by_role("link", name="Slave consumption").click()
    live = page.locator("#live")
    # Nobody loads the page again: it is told.
    expect(live).to_contain_text("Consumers read from the slave")
    expect(live).to_contain_text("the master is gone: its conditions held in all checks")


def keyboard_reaches_every_page(page: Page) -> None:
    """The first stop leads past the bar, the next ones are the pages."""
    page.reload()
    reached: list[str] = []
    for _ in range(15):
        page.keyboard.press("Tab")
        reached.append(str(page.evaluate("document.activeElement.getAttribute('href')")))
    assert reached[0] == "#content"
    assert set(_PAGES.split()) <= set(reached)


def take_pictures(page: Page, folder: Path, paths: dict[str, str]) -> None:
    """Each page in light and dark, and on a phone, where none is wider than the screen; none has flaws."""
    for name, path in paths.items():
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        assert page.evaluate(_FLAWS) == [], path
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=folder / f"{name}-{scheme}.png", full_page=True)
        page.set_viewport_size({"width": 390, "height": 800})
        page.emulate_media(color_scheme="light")
        page.screenshot(path=folder / f"{name}-phone.png", full_page=True)
        assert page.evaluate(_IS_TOO_WIDE) is False, path
        page.set_viewport_size({"width": 1280, "height": 860})
