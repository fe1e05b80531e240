"""The application: who is let in, what pages and REST answer, and what is written down of a change."""

import asyncio
import base64
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Message, Receive, Scope, Send

from tanist.console import desk
from tanist.console.access.audit import AuditEntry, AuditFailed, AuditLog
from tanist.console.access.login_limit import PER_ADDRESS, WINDOW_S
from tanist.console.access.sessions import IDLE_S
from tanist.console.change_desk import ChangeDesk
from tanist.console.errors import Partly
from tanist.console.views.digests import digests
from tanist.console.watching.lookups import KEPT_S
from tanist.console.watching.snapshot import Snapshot
from tanist.console.web.api import OPERATIONS
from tanist.console.web.guard import MAX_NAME_CHARS
from tanist.console.web.login import local_path
from tanist.console.web.proxy import BehindProxy
from tanist.protocol import Command
from tests.support.console_views import CONSUMERS, TOPIC, controlled, dead_master, master, slave, snapshot
from tests.support.console_web import OPERATOR, PASSWORD, VIEWER, Answer, Browser, PlayedConsole
from tests.support.slave_consume_views import GROUP, MASTER, SLAVE, PlayedView, PlayedWire, waiting_master

PAGES = [
    "/",
    "/brokers",
    f"/brokers/{MASTER}",
    "/replication",
    "/slave-consumption",
    "/topics",
    f"/topics/{TOPIC}",
    "/topics?all=1&q=RETRY",
    "/groups",
    f"/groups/{CONSUMERS}",
    "/messages",
    "/dead-letters",
    f"/dead-letters/{CONSUMERS}",
    "/alarms",
    "/certificates",
    "/audit",
]
NEED_MORE = {"/machine", "/resets", "/resets/{plan}", "/messages", "/messages/{id}"}
"""Questions that need more than a look at a cluster that is made up."""
END = f"/slave-consumption/{GROUP}/end"


def ask(target: str, *, name: str | None = OPERATOR, console: PlayedConsole | None = None) -> Answer:
    """What somebody gets who is logged in, or is nobody."""

    async def visit(browser: Browser) -> Answer:
        if name is not None:
            await browser.log_in(name)
        return await browser.get(target)

    return (console or PlayedConsole(snapshot())).run(visit)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "seen", [snapshot(), dead_master(), controlled()], ids=["well", "dead master", "controlled"]
)
def test_every_page_shows_itself_and_holds_nothing_from_elsewhere(page: str, seen: object) -> None:
    answer = ask(page, console=PlayedConsole(seen))  # pyright: ignore[reportArgumentType]
    assert answer.status == 200
    assert "<main" in answer.text
    assert "http://" not in answer.text
    assert "https://" not in answer.text
    assert "style=" not in answer.text
    assert "onclick" not in answer.text
    assert "default-src 'none'; script-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


def test_the_replication_of_a_group_under_a_controller_is_shown_after_a_switch() -> None:
    answer = ask("/replication", console=PlayedConsole(controlled(), before=snapshot()))
    for told in (
        "Mode auto-switch",
        "Epoch 7",
        "Sync state set 2",
        "Confirmed to 4 960",
        "Lease runs 2.4 s more",
        "Why replica 1 is not in step",
        # The timeline, and the same as a table.
        "epoch 6: log offsets 0 to 3000",
        "epoch 7: log offsets 3000 to now",
        "7 3 000 now 2.0 KiB",
        # The newest change first.
        f"{SLAVE} slave master 7",
        f"{MASTER} master slave 7",
        "Turned away 3 \u00d7 proof",
        f"10.6.6.6:1234 {SLAVE} it proved nothing 00ff",
    ):
        assert told in answer.words, (told, answer.words)
    assert answer.text.count('<svg class="timeline"') == 1


def test_a_master_that_died_is_gone_beside_the_one_that_took_its_place() -> None:
    reigning = next(look for look in controlled().brokers if look.is_master)
    gone = master(slave_consume=None, failure="cannot connect: refused", runtime={})
    words = ask("/replication", console=PlayedConsole(snapshot(gone, reigning))).words
    assert words.count("Master 0") == 1
    assert (
        f"Gone {MASTER} does not answer: cannot connect: refused was master 0 when it was seen last" in words
    )
    assert words.index(f"Master 0 {SLAVE}") < words.index("Gone")


def test_a_master_whose_lease_is_over_is_said_to_acknowledge_nothing() -> None:
    seen = controlled(lease_ms=0, sync_state_set=[], reasons=["no controller answers"])
    words = ask("/replication", console=PlayedConsole(seen)).words
    assert "Sync state set empty" in words
    assert "Lease over: it acknowledges nothing Why no controller answers" in words


def test_a_page_that_a_job_drew_is_shown_and_nothing_in_it_is_run() -> None:
    def ask_with_page(path: str) -> Answer:
        console = PlayedConsole(snapshot())
        (console.results / "lag.html").write_text("<svg></svg><script>steal()</script>")
        return ask(path, console=console)

    assert 'href="/certificates/lag.html"' in ask_with_page("/certificates").text
    answer = ask_with_page("/certificates/lag.html")
    assert (answer.status, answer.text) == (200, "<svg></svg><script>steal()</script>")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'; ")
    assert "script-src" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("page", [*PAGES, "/events"])
def test_who_is_not_logged_in_is_led_to_the_login_and_back(page: str) -> None:
    answer = ask(page, name=None)
    assert answer.status == 303
    assert answer.headers["location"].startswith("/login")


def test_an_open_page_of_somebody_who_is_not_logged_in_any_more_goes_to_the_login() -> None:
    async def visit(browser: Browser) -> Answer:
        return await browser.get("/brokers", hx_request="true")

    answer = PlayedConsole(snapshot()).run(visit)
    assert (answer.status, answer.headers["hx-redirect"]) == (200, "/login?next=%2Fbrokers")


@pytest.mark.parametrize("seen", [snapshot(), dead_master()], ids=["well", "dead master"])
@pytest.mark.parametrize(("page", "view"), [("/topics", "topics"), (f"/brokers/{MASTER}", "brokers")])
def test_a_page_says_how_its_view_looked_so_that_a_look_it_has_missed_is_news(
    page: str, view: str, seen: Snapshot
) -> None:
    told = digests(seen)[view]
    assert f'data-view="{view}" data-digest="{told}"' in ask(page, console=PlayedConsole(seen)).text


def test_an_empty_cluster_says_how_to_fill_it() -> None:
    empty = snapshot(master())
    empty = type(empty)(taken_ms=empty.taken_ms, name_server=empty.name_server)
    for page, words in {
        "/": "The name server lists no broker. Start one",
        "/brokers": "No broker is listed.",
        "/replication": "No replica group is known",
        "/slave-consumption": "No group has a registry",
        "/topics": "No topic was made yet.",
        "/groups": "No consumer has come yet.",
        "/messages": "Nothing is searched for yet.",
        "/alarms": "Nothing is the matter.",
        "/certificates": "Nothing is there yet.",
        "/dead-letters": "No group has given up on a message.",
    }.items():
        assert words in ask(page, console=PlayedConsole(empty)).words


@pytest.mark.parametrize(
    ("proxies", "proto", "is_secure"),
    [
        (["10.1.1.1"], "https", True),
        (["10.1.1.1"], "http", False),
        (["10.9.9.9"], "https", False),
        ([], "https", False),
    ],
)
def test_the_cookie_is_secure_if_a_proxy_that_is_trusted_says_tls(
    proxies: list[str], proto: str, is_secure: bool
) -> None:
    console = PlayedConsole(snapshot(), proxies=proxies)

    async def visit(browser: Browser) -> Answer:
        form = {"name": OPERATOR, "password": PASSWORD}
        return await browser.post(
            "/login", form, x_forwarded_proto=proto, x_forwarded_for="1.1.1.1, 10.7.7.7"
        )

    answer = console.run(visit)
    assert ("Secure" in answer.headers["set-cookie"]) is is_secure
    assert ("strict-transport-security" in answer.headers) is is_secure
    assert console.audit.last[0].address == ("10.7.7.7" if "10.1.1.1" in proxies else "10.1.1.1")


@pytest.mark.parametrize(
    ("lines", "client", "scheme"),
    [
        ([], "10.1.1.1", "http"),
        (
            [("for", "6.6.6.6"), ("proto", "https"), ("for", "10.7.7.7"), ("proto", "http")],
            "10.7.7.7",
            "http",
        ),
        ([("for", "6.6.6.6"), ("for", "5.5.5.5, 10.7.7.7"), ("proto", "http, https")], "10.7.7.7", "https"),
    ],
)
def test_of_many_lines_only_the_one_that_the_proxy_added_is_believed(
    lines: list[tuple[str, str]], client: str, scheme: str
) -> None:
    seen: list[tuple[str, str]] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append((scope["client"][0], scope["scheme"]))

    async def receive() -> Message:
        raise AssertionError

    async def send(_message: Message) -> None:
        raise AssertionError

    headers = [(f"x-forwarded-{name}".encode(), value.encode()) for name, value in lines]
    scope = {"type": "http", "scheme": "http", "client": ("10.1.1.1", 1), "headers": headers}
    asyncio.run(BehindProxy(app, ["10.1.1.1"])(scope, receive, send))
    assert seen == [(client, scheme)]


@pytest.mark.parametrize(
    "key", ["fileReservedTime", "deleteWhen", "diskMaxUsedSpaceRatio", "diskSpaceCleanForciblyRatio"]
)
def test_a_setting_that_deletes_messages_is_changed_by_who_typed_the_address(key: str) -> None:
    async def visit(browser: Browser) -> Answer:
        await browser.log_in()
        sent = {"key": key, "value": "1", "confirm": ""}
        csrf = await browser.csrf()
        return await browser.post_json(f"/api/v1/brokers/{MASTER}/settings", sent, x_csrf_token=csrf)

    answer = PlayedConsole(snapshot()).run(visit)
    assert (answer.status, "type" in answer.json["error"]) == (409, True)


def test_a_change_that_was_made_in_part_is_written_down_so_and_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def change(*_: object, **__: object) -> str:
        raise Partly("orders has 1 queue on broker-a; not on broker-b: no")

    monkeypatch.setattr(ChangeDesk, "update_topic", change)
    console = PlayedConsole(snapshot())

    async def visit(browser: Browser) -> tuple[Answer, str]:
        await browser.log_in()
        csrf = await browser.csrf()
        sent = {"topic": "new", "queues": 1, "permission": "RW"}
        answer = await browser.post_json("/api/v1/topics", sent, x_csrf_token=csrf)
        await browser.post("/topics", {"topic": "new", "queues": "1", "permission": "RW", "csrf": csrf})
        return answer, (await browser.get("/topics")).words

    answer, page = console.run(visit)
    assert (answer.status, "not on broker-b" in answer.json["error"]) == (502, True)
    assert "Done only in part" in page
    assert console.audit.last[0].outcome == "partly"


def test_a_login_leads_where_somebody_wanted_to_go() -> None:
    async def visit(browser: Browser) -> tuple[Answer, str]:
        return await browser.log_in(next="/groups?q=a"), browser.set_cookie

    answer, cookie = PlayedConsole(snapshot()).run(visit)
    assert (answer.status, answer.headers["location"]) == (303, "/groups?q=a")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie


@pytest.mark.parametrize("target", ["//evil.test", "/\\evil.test", "https://evil.test", "", "/a\nb", None])
def test_a_login_leads_nowhere_else(target: str | None) -> None:
    assert local_path(target) == "/"


def test_a_wrong_password_says_so_and_many_have_to_wait() -> None:
    console = PlayedConsole(snapshot())

    async def visit(browser: Browser) -> list[int]:
        found = [(await browser.log_in(password="wrong password")).status for _ in range(PER_ADDRESS)]
        found.append((await browser.log_in()).status)
        console.clock.advance_ms(int(WINDOW_S * 1000))
        found.append((await browser.log_in()).status)
        return found

    assert console.run(visit) == [401] * (PER_ADDRESS - 1) + [429, 429, 303]


def test_tries_that_come_all_at_once_are_no_more_than_one_after_the_other() -> None:
    console = PlayedConsole(snapshot())

    async def visit(browser: Browser) -> list[int]:
        tries = (browser.log_in(password="wrong password") for _ in range(4 * PER_ADDRESS))
        await asyncio.gather(*tries)
        return [console.tried.count(OPERATOR)]

    # Two are looked at together, so one more than that may be.
    assert console.run(visit)[0] <= PER_ADDRESS + 1


def test_a_name_that_is_longer_than_any_is_cut_before_it_is_remembered() -> None:
    console = PlayedConsole(snapshot())

    async def visit(browser: Browser) -> None:
        sent = base64.b64encode(b"x" * 5000 + b":wrong password").decode()
        await browser.get("/api/v1/overview", authorization=f"Basic {sent}")

    console.run(visit)
    assert console.tried == ["x" * MAX_NAME_CHARS]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("LOCALHOST:9", 200),
        ("[::1]:8080", 200),
        ("[::1]", 200),
        ("evil.test", 421),
        ("127.0.0.1.evil.test:8080", 421),
        ("", 421),
    ],
)
def test_a_console_of_this_machine_has_no_other_name(host: str, status: int) -> None:
    async def visit(browser: Browser) -> Answer:
        return await browser.get("/health/live", host=host)

    answer = PlayedConsole(snapshot(), is_local=True).run(visit)
    assert answer.status == status
    assert "content-security-policy" in answer.headers


def test_a_mistake_of_the_console_is_answered_with_the_headers_of_safety(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(desk, "broker_page", fail)
    answer = ask(f"/brokers/{MASTER}")
    assert answer.status == 500
    assert "The console made a mistake" in answer.words
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


def test_a_login_that_another_site_sends_is_refused() -> None:
    async def visit(browser: Browser) -> list[int]:
        form = {"name": OPERATOR, "password": PASSWORD}
        return [
            (await browser.post("/login", form, origin="http://evil.test")).status,
            (await browser.post("/login", form, sec_fetch_site="cross-site")).status,
        ]

    assert PlayedConsole(snapshot()).run(visit) == [403, 403]


def test_who_logs_out_is_out_and_needs_the_token_for_it() -> None:
    async def visit(browser: Browser) -> list[int]:
        await browser.log_in()
        csrf = await browser.csrf()
        kept = dict(browser.cookies)
        found = [(await browser.post("/logout", {})).status, (await browser.get("/")).status]
        found.append((await browser.post("/logout", {"csrf": csrf})).status)
        browser.cookies = kept
        found.append((await browser.get("/")).status)
        return found

    assert PlayedConsole(snapshot()).run(visit) == [403, 200, 303, 303]


def test_a_page_that_refreshes_itself_keeps_nobody_logged_in() -> None:
    console = PlayedConsole(snapshot())

    async def visit(browser: Browser) -> list[int]:
        await browser.log_in()
        console.clock.advance_ms(int(IDLE_S * 1000))
        found = [(await browser.get("/", x_live="1")).status]
        console.clock.advance_ms(1_000)
        found.append((await browser.get("/")).status)
        return found

    assert console.run(visit) == [200, 303]


def test_the_audit_is_for_operators() -> None:
    assert ask("/audit", name=VIEWER).status == 403
    assert ask("/api/v1/audit", name=VIEWER).status == 403
    assert "log in" in ask("/audit").words


def test_a_page_or_a_thing_that_is_not_there_says_so() -> None:
    for target in ("/nothing", "/brokers/10.9.9.9:1", "/topics/Nope", "/groups/nope"):
        answer = ask(target)
        assert answer.status == 404
        assert "Not there" in answer.words
    assert ask("/api/v1/topics/Nope").json == {"error": "no broker has a topic Nope"}


class _CountingWire(PlayedWire):
    """Counts what is asked of anybody."""

    count = 0

    async def ask(self, address: str, command: Command, *, timeout_s: float | None = None) -> Command:
        self.count += 1
        return await super().ask(address, command, timeout_s=timeout_s)


def test_no_broker_is_asked_for_a_group_that_nobody_knows() -> None:
    wire = _CountingWire()
    assert ask("/groups/nope", console=PlayedConsole(snapshot(), wire)).status == 404
    assert wire.count == 0
    assert ask(f"/groups/{CONSUMERS}", console=PlayedConsole(snapshot(), wire)).status == 200
    assert wire.count > 0


def test_orders_are_asked_for_once_for_all_who_look() -> None:
    wire = _CountingWire()
    console = PlayedConsole(snapshot(), wire)

    async def visit(browser: Browser) -> list[int]:
        await browser.log_in()
        counts: list[int] = []
        for pause_ms in (0, 1_000, int(KEPT_S * 1000)):
            console.clock.advance_ms(pause_ms)
            assert (await browser.get("/resets")).status == 200
            counts.append(wire.count)
        return counts

    assert console.run(visit) == [1, 1, 2]


def test_names_are_shown_as_text_whatever_they_hold() -> None:
    evil = "<script>alert(1)</script>"
    look = master(failure=evil, runtime={})
    answer = ask("/", console=PlayedConsole(snapshot(look, slave())))
    assert evil not in answer.text
    assert evil in answer.words.replace("< ", "<").replace(" >", ">") or "&lt;script&gt;" in answer.text


def test_a_console_lives_before_it_sees_and_is_ready_when_it_does() -> None:
    assert ask("/health/live", name=None, console=PlayedConsole(None)).json == {"status": "live"}
    blind = ask("/health/ready", name=None, console=PlayedConsole(None))
    assert (blind.status, blind.json["reason"]) == (503, "the cluster was not looked at yet")
    assert ask("/health/ready", name=None).json == {"status": "ready"}


def test_rest_answers_what_the_pages_show() -> None:
    view = ask("/api/v1/slave-consumption", console=PlayedConsole(dead_master())).json
    (group,) = view["groups"]
    assert (group["reader"], group["term"], group["ledger"][0]["duplicatesAtMost"]) == (SLAVE, 3, 7)


def test_rest_takes_a_name_and_a_password_and_nobody_without() -> None:
    async def visit(browser: Browser) -> list[int]:
        def basic(text: str) -> str:
            return "Basic " + base64.b64encode(text.encode()).decode()

        return [
            (await browser.get("/api/v1/overview")).status,
            (await browser.get("/api/v1/overview", authorization=basic(f"{VIEWER}:{PASSWORD}"))).status,
            (await browser.get("/api/v1/overview", authorization=basic(f"{VIEWER}:wrong"))).status,
            (await browser.get("/api/v1/overview", authorization="Basic ???")).status,
            (await browser.get("/api/v1/overview", authorization="Basic \xff")).status,
            (await browser.get("/", authorization=basic(f"{VIEWER}:{PASSWORD}"))).status,
        ]

    assert PlayedConsole(snapshot()).run(visit) == [401, 200, 401, 401, 401, 303]


def test_the_openapi_document_describes_what_rest_answers() -> None:
    targets = {"address": MASTER, "topic": TOPIC, "group": CONSUMERS}

    async def visit(browser: Browser) -> None:
        await browser.log_in()
        document = (await browser.get("/api/v1/openapi.json")).json
        assert document["openapi"] == "3.1.0"
        answers = {operation.path for operation in OPERATIONS if operation.answer is not None}
        assert document["paths"].keys() - answers == {"/dead-letters/{group}/export"}
        beside = {path for path, operations in document["paths"].items() if "servers" in operations}
        assert beside == {"/health/live", "/health/ready"}
        for path in answers - beside:
            for method, operation in document["paths"][path].items():
                schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
                name = schema["$ref"].rpartition("/")[2]
                if method == "get" and path not in NEED_MORE:
                    answer = await browser.get("/api/v1" + path.format(**targets))
                    described = document["components"]["schemas"][name]["properties"]
                    assert answer.status == 200, path
                    assert set(answer.json) == set(described), path

    PlayedConsole(snapshot()).run(visit)


def test_all_references_of_the_document_are_in_it() -> None:
    text = ask("/api/v1/openapi.json").text
    known = ask("/api/v1/openapi.json").json["components"]["schemas"]
    references = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert references - known.keys() == set()


def waiting() -> tuple[PlayedConsole, PlayedView]:
    """A console that sees a master which waits for a slave that is gone."""
    view = PlayedView(waiting_master())
    seen = snapshot(master(slave_consume=waiting_master()), slave(failure="refused", runtime={}))
    return PlayedConsole(seen, PlayedWire(view)), view


def test_who_types_the_groups_name_ends_its_slave_consumption_and_it_is_written_down() -> None:
    console, view = waiting()

    async def visit(browser: Browser) -> Answer:
        await browser.log_in()
        form = {"csrf": await browser.csrf(), "confirm": GROUP, "reason": "its disk broke"}
        assert (await browser.post(END, form)).headers["location"] == "/slave-consumption"
        return await browser.get("/slave-consumption")

    assert "slave consumption 3 is ended" in console.run(visit).words
    assert view.ended == [("its disk broke", False)]
    assert [(entry.user, entry.subject, entry.outcome) for entry in console.audit.last[:2]] == [
        (OPERATOR, GROUP, "done"),
        (OPERATOR, GROUP, "asked"),
    ]


class _AuditThatFills(AuditLog):
    """Takes what is asked for; when that is done its disk is full."""

    def write(self, entry: AuditEntry) -> None:
        if entry.outcome != "asked" and entry.action != "log in":
            raise AuditFailed("the disk is full")
        super().write(entry)


@pytest.mark.parametrize(
    ("typed", "status", "words"),
    [
        (GROUP, 200, "slave consumption 3 is ended; this could not be written down: the disk is full"),
        ("broker-b", 409, f"type {GROUP} to say that you mean it; nothing was changed"),
    ],
)
def test_what_was_done_is_told_though_it_could_not_be_written_down(
    typed: str, status: int, words: str
) -> None:
    console, view = waiting()
    console.audit = _AuditThatFills()

    async def visit(browser: Browser) -> Answer:
        await browser.log_in()
        csrf = await browser.csrf()
        return await browser.post_json(f"/api/v1{END}", {"confirm": typed}, x_csrf_token=csrf)

    answer = console.run(visit)
    assert (answer.status, list(answer.json.values())) == (status, [words])
    assert len(view.ended) == (status == 200)


Change = Callable[[Browser], Awaitable[Answer]]


async def _untyped(browser: Browser) -> Answer:
    await browser.log_in()
    form = {"csrf": await browser.csrf(), "confirm": "broker-b"}
    await browser.post(END, form)
    return await browser.get("/slave-consumption")


async def _without_token(browser: Browser) -> Answer:
    await browser.log_in()
    return await browser.post(END, {"confirm": GROUP})


async def _with_another_token(browser: Browser) -> Answer:
    await browser.log_in()
    return await browser.post(END, {"confirm": GROUP, "csrf": "token-99"})


async def _from_elsewhere(browser: Browser) -> Answer:
    await browser.log_in()
    form = {"csrf": await browser.csrf(), "confirm": GROUP}
    return await browser.post(END, form, origin="http://evil.test")


async def _as_viewer(browser: Browser) -> Answer:
    await browser.log_in(VIEWER)
    return await browser.post(END, {"csrf": await browser.csrf(), "confirm": GROUP})


async def _too_long(browser: Browser) -> Answer:
    await browser.log_in()
    return await browser.post(END, {"confirm": "x" * (1 << 20)})


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (_untyped, 200, f"Not done: type {GROUP} to say that you mean it"),
        (_without_token, 403, "this form is old"),
        (_with_another_token, 403, "this form is old"),
        (_from_elsewhere, 403, "this form is old"),
        (_as_viewer, 403, "is a viewer"),
        (_too_long, 413, "bytes were sent"),
    ],
)
def test_a_change_that_is_not_meant_or_not_allowed_is_not_made(
    change: Change, status: int, words: str
) -> None:
    console, view = waiting()

    async def visit(browser: Browser) -> Answer:
        return await change(browser)

    answer = console.run(visit)
    assert answer.status == status
    assert words in answer.words
    assert view.ended == []


def test_rest_ends_slave_consumption_too_and_says_why_it_does_not() -> None:
    console, view = waiting()

    async def visit(browser: Browser) -> list[Answer]:
        await browser.log_in()
        csrf = await browser.csrf()
        target = f"/api/v1{END}"
        return [
            await browser.post_json(target, {"confirm": GROUP}),
            await browser.post_json(target, {"confirm": "broker-b"}, x_csrf_token=csrf),
            await browser.post_json(target, {"yes": True}, x_csrf_token=csrf),
            await browser.post_json(target, {"confirm": GROUP, "reason": "gone"}, x_csrf_token=csrf),
        ]

    answers = console.run(visit)
    assert [answer.status for answer in answers] == [403, 409, 400, 200]
    assert answers[-1].json == {"done": "slave consumption 3 is ended"}
    assert view.ended == [("gone", False)]


def test_a_group_that_is_well_has_nothing_to_end() -> None:
    console = PlayedConsole(snapshot())

    async def visit(browser: Browser) -> Answer:
        await browser.log_in()
        csrf = await browser.csrf()
        return await browser.post_json(f"/api/v1{END}", {"confirm": GROUP}, x_csrf_token=csrf)

    assert console.run(visit).status == 409
    assert console.audit.last[0].outcome == "refused"


def test_a_cluster_that_tanist_up_does_not_run_is_not_told_to_die() -> None:
    console = PlayedConsole(snapshot())

    async def visit(browser: Browser) -> list[int]:
        await browser.log_in()
        token = await browser.csrf()
        return [
            (await browser.get("/machine")).status,
            (await browser.get("/api/v1/machine")).status,
            (await browser.post_json("/api/v1/machine/kill", {"whom": "master"}, x_csrf_token=token)).status,
        ]

    assert console.run(visit) == [404, 404, 404]
    assert "This machine" not in ask("/").words


def test_no_secret_is_on_any_page() -> None:
    for page in PAGES:
        text = ask(page).text
        assert PASSWORD not in text
        assert "scrypt" not in text
