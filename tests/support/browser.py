"""Debian's Chromium, driven without a network."""

from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

BROWSER = "/usr/bin/chromium"
OFFLINE = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


@contextmanager
def opened(width: int, height: int) -> Iterator[Page]:
    """Yield an empty page of a window with this size (pixels)."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=OFFLINE)
        try:
            yield browser.new_page(viewport={"width": width, "height": height})
        finally:
            browser.close()


def serious_findings(page: Page) -> list[tuple[str, str]]:
    """Return the findings of axe that keep readers out: name and summary."""
    violations = Axe().run(page, options={"preload": False}).response["violations"]
    return [
        (each["id"], each["nodes"][0]["failureSummary"])
        for each in violations
        if each["impact"] in ("serious", "critical")
    ]
