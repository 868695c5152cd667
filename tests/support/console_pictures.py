"""Pictures of the console for the documentation: run it with the number of seconds of the run.

    .venv/bin/python tests/support/console_pictures.py 60

Needs a study's results: `daqloom study run atlas-min-buffer --quick --store FOLDER/daqloom-store`
with FOLDER as the second argument.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import Page

from support.browser import opened
from support.consoles import controlled, served
from support.repository import ROOT

IMAGES = ROOT / "docs" / "images"
SCENARIO = ("laptop", "--set", "measure.transport=tcp", "--set", "event.rate=100 kHz")


def go(page: Page, name: str) -> None:
    """Open a page, and wait until it is shown."""
    page.locator(f'nav a[href="#{name}"]').click()
    page.locator(f"#page-{name}").wait_for()


def take(page: Page, name: str) -> None:
    """Write a picture of the window, without the focus on an element."""
    page.evaluate("() => document.activeElement.blur()")
    page.screenshot(path=IMAGES / f"console-{name}.png")


def main(seconds: float, folder: str) -> None:
    """Write all pictures."""
    text = (ROOT / "scenarios" / "lhcb-10-percent.toml").read_text()
    text = text.replace('"74 ms"', '"2 ms"').replace('"26 ms"', '"0 s"')
    Path(folder, "fabric.toml").write_text(text)
    with tempfile.TemporaryDirectory() as place:
        runtime = Path(place, "run")
        with (
            controlled(*SCENARIO, runtime=runtime),
            served(folder, runtime=runtime) as console,
            opened(1280, 860) as page,
        ):
            page.set_default_timeout(120_000)
            page.goto(f"{console.url}#token={console.tokens['operate']}")
            page.get_by_role("button", name="start", exact=True).click()
            page.locator('#phase[data-kind="running"]').wait_for()
            page.wait_for_timeout(1000 * seconds)
            take(page, "run")
            page.emulate_media(color_scheme="dark")
            page.set_viewport_size({"width": 390, "height": 844})
            page.wait_for_timeout(2000)
            take(page, "run-narrow")
            page.emulate_media(color_scheme="light")
            page.set_viewport_size({"width": 1280, "height": 860})
            go(page, "topology")
            page.locator("#source").fill("fabric.toml")
            page.locator("#topology-simulate").click()
            page.locator("#moment").wait_for()
            page.locator("#moment").fill("40")
            take(page, "topology")
            go(page, "studies")
            page.locator("#study option").first.wait_for(state="attached")
            page.locator("#study").select_option("atlas-min-buffer")
            page.locator("#quick").check()
            page.get_by_role("button", name="Show").click()
            page.locator("#shown img").first.wait_for()
            take(page, "studies")
            go(page, "scenario")
            page.locator("#analysed td").first.wait_for()
            place_cursor = """() => {
                const text = document.getElementById("text");
                text.focus();
                text.selectionStart = text.selectionEnd = text.value.indexOf("packing =");
            }"""
            page.evaluate(place_cursor)
            page.locator("#text").press("ArrowRight")
            page.locator("#help b").first.wait_for()
            page.locator("#slider").press("ArrowRight")
            page.wait_for_timeout(2000)
            take(page, "scenario")


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2])
