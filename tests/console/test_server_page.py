"""The console's page in a browser, with a real run."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from support.browser import opened, serious_findings
from support.consoles import HUNG_S, Served, controlled, served

pytestmark = pytest.mark.process
PAGES = ("run", "topology", "studies", "scenario")
MOST_FRAMES = 3
"""Frames, one a second, within which the page shows a loss: 2 s, and one under way."""
HOSTILE = '<img src=x onerror="document.title=1">'
PATIENCE_MS = HUNG_S * 1000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "files").mkdir()
    text = f"title = '{HOSTILE}'\n"
    (folder / "files" / "hostile.toml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def control(place: Path) -> Iterator[None]:
    scenario = ["laptop", "--set", "measure.transport=tcp", "--set", "measure.restart=false"]
    with controlled(*scenario, runtime=place / "run"):
        yield


@pytest.fixture(scope="module")
def console(place: Path, control: None) -> Iterator[Served]:
    with served(str(place / "files"), runtime=place / "run") as found:
        yield found


@pytest.fixture
def page(console: Served) -> Iterator[Page]:
    with opened(1300, 1000) as page:
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: pytest.fail(str(error)))
        page.goto(f"{console.url}#token={console.tokens['operate']}")
        page.locator("body[data-frames]").wait_for()
        yield page
        assert {re.match(r"(blob:|data:)?(http://[^/]+)?", url)[2] for url in requests} <= {
            console.url.rstrip("/"),
            None,
        }


def frames(page: Page) -> int:
    return int(page.locator("body").get_attribute("data-frames"))


def go(page: Page, name: str) -> None:
    page.locator(f'nav a[href="#{name}"]').click()
    page.locator(f"#page-{name}").wait_for()


def test_a_run_is_started_loses_a_unit_and_is_stopped_from_the_page(page: Page) -> None:
    page.get_by_role("button", name="start", exact=True).click()
    page.locator('#phase[data-kind="running"]').wait_for()
    expect(page.locator("#units tbody tr")).to_have_count(4)
    victim = page.locator("#units tbody tr", has_text="running").first
    unit, process_id = (victim.locator("td").nth(at).inner_text() for at in (0, 3))
    before = frames(page)
    os.kill(int(process_id), signal.SIGKILL)
    page.locator("#events li", has_text=re.compile(rf"unit {unit} is lost")).first.wait_for()
    assert frames(page) - before <= MOST_FRAMES
    odd = page.locator("#units tr.odd")
    odd.wait_for()
    assert odd.locator("td").first.inner_text() == unit
    odd.get_by_role("button").click()
    expect(page.locator("#units tr.odd")).to_have_count(0)
    page.get_by_role("button", name="stop", exact=True).click()
    page.locator('#phase[data-kind="ready"]').wait_for()


def test_units_are_excluded_and_values_changed_from_the_page(page: Page) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="exclude 3").click()
    page.get_by_role("button", name="include 3").click()
    page.get_by_role("button", name="start", exact=True).click()
    page.locator('#phase[data-kind="running"]').wait_for()
    expect(page.locator("#settings-label")).to_be_hidden()
    page.get_by_role("button", name="stop", exact=True).click()
    page.locator('#phase[data-kind="ready"]').wait_for()
    settings = page.locator("#settings")
    settings.fill("event.rate=1 kHz; event.packing=x")
    page.get_by_role("button", name="configure", exact=True).click()
    expect(page.locator("#note")).to_contain_text("event.packing")
    settings.fill("event.rate=1 kHz; event.packing=3")
    page.get_by_role("button", name="configure", exact=True).click()
    expect(settings).to_have_value("")
    expect(page.locator("#note")).to_have_text("")
    page.locator("#events li", has_text="event.packing").first.wait_for()


def test_pages_are_accessible_in_light_and_dark_and_narrow(page: Page) -> None:
    for name in PAGES:
        go(page, name)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert serious_findings(page) == [], f"{name}, {scheme}"
        for width in (360, 3840):
            page.set_viewport_size({"width": width, "height": 900})
            scrolled = "document.documentElement.scrollWidth"
            assert page.evaluate(scrolled) <= width, f"{name}, {width} pixels"


def test_the_keyboard_reaches_every_page_and_its_controls(page: Page) -> None:
    page.locator("body").press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for name in PAGES:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.hash") == f"#{name}"
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(outline) == "solid"
        page.keyboard.press("Enter")
        page.locator(f"#page-{name}").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "start"


def test_closed_forms_follow_a_slider_and_mistakes_have_their_sentences(page: Page) -> None:
    go(page, "scenario")
    text = page.locator("#text")
    expect(text).to_have_value(re.compile("Event building on a laptop"))
    text.fill('[event]\nsize = "x"\nrate = "y"\n')
    expect(page.locator("#mistakes li")).to_have_count(2)
    text.fill(
        '[event]\nfragment_size = "1 kB"\n[building]\nprotocol = "shift"\n[builders]\n'
        'folded = true\n[network]\ntechnology = "infiniband"\n'
    )
    phase = page.locator("#analysed tr", has_text="phase_s").locator("td").last
    expect(page.locator("#mistakes li")).to_have_count(0)
    before = phase.inner_text()
    text.press("Control+Home")
    text.press("ArrowDown")
    expect(page.locator("#slider-key")).to_have_text("event.fragment_size")
    expect(page.locator("#help")).to_contain_text("event.fragment_size")
    page.locator("#slider").press("End")  # ten times the value
    expect(page.locator("#slider-value")).to_have_text("10 kB")
    expect(phase).not_to_have_text(before)
    expect(text).to_have_value(re.compile('fragment_size = "10 kB"'))


def test_a_simulation_comes_and_shows_its_topology_over_time(page: Page) -> None:
    go(page, "scenario")
    expect(page.locator("#text")).to_have_value(re.compile("Event building on a laptop"))
    page.locator("#simulate").click()
    page.locator("#simulated td", has_text="events_built").wait_for()
    page.get_by_role("link", name="loads and times").click()
    page.locator("#moment").wait_for()
    assert page.locator("#fabric svg rect").count() == 6
    assert page.locator("#fabric svg rect.sending").count() == 0
    for _ in range(10):  # some moment has a host that sends
        page.locator("#moment").press("ArrowRight")
        if page.locator("#fabric svg rect.sending").count():
            break
    assert page.locator("#fabric svg rect.sending").count() > 0


def test_hostile_texts_stay_texts(page: Page) -> None:
    go(page, "scenario")
    page.locator("#start").fill("hostile.toml")
    page.get_by_role("button", name="Open").click()
    expect(page.locator("#text")).to_have_value(re.compile("onerror"))
    page.locator("#text").fill(f'"{HOSTILE}" = 1\n'.replace('="document', "='document", 1))
    page.locator("#mistakes li").first.wait_for()
    page.locator("#start").fill(f"{HOSTILE}.toml")
    page.get_by_role("button", name="Open").click()
    expect(page.locator("#note")).to_contain_text("<img")
    assert page.locator("main img, #note img").count() == 0
    assert page.title() == "scenario – daqloom console"


def test_a_viewer_has_no_working_commands(console: Served) -> None:
    with opened(800, 600) as page:
        page.goto(console.url)
        page.locator("#login[open]").wait_for()
        assert serious_findings(page) == []
        page.locator("#token").fill("wrong")
        page.locator("#token").press("Enter")
        expect(page.locator("#login-failure")).to_have_text("the token is wrong")
        page.locator("#token").fill(console.tokens["view"])
        page.locator("#token").press("Enter")
        page.locator("#commands button").first.wait_for()
        assert page.locator("#commands button:enabled").count() == 0
        assert page.locator("#simulate").is_disabled()
