"""Pages of studies, opened in a browser."""

from dataclasses import replace

import pytest

from daqloom.report.study.page import StudyReport, render
from daqloom.report.study.report import findings, pictures
from daqloom.study.methods.assumptions import Change, Effect, Effects
from support.browser import opened, serious_findings
from support.study_datasets import PEAK, POINT, RATES, SIZES, study

SCREENS = 2 * 1080
ASSUMED = {f"network.links.{name}.delay": "1 us" for name in ("source", "uplink", "access")}
MOVING = tuple(
    Effect(f"key.{number}", "800 Gb/s", (Change("8 Tb/s", 105e6), Change("400 Gb/s", 40e6)))
    for number in range(8)
)
VARIANTS = ("variant", ["as it is", *(f"variant number {n}" for n in range(1, 24))], "")


@pytest.mark.process
def test_the_details_begin_on_the_third_screen_at_most() -> None:
    requests: list[str] = []
    with opened(1920, 1080) as page:
        page.on("request", lambda request: requests.append(request.url))
        for axes in ((VARIANTS,), (RATES, SIZES)):
            dataset = study(*axes, operating_point=POINT, assumed=ASSUMED)
            effects = Effects(PEAK, True, 84e6, MOVING, ASSUMED)
            report = StudyReport(dataset, conclusions=findings(dataset), effects=effects)
            page.set_content(render([replace(report, pictures=pictures(dataset))]))
            place = page.locator("#details").bounding_box()
            assert place is not None
            assert page.locator(".top img").count() == 1
            assert 300 < place["y"] <= SCREENS, [axis[0] for axis in axes]
        assert not serious_findings(page)
    assert {url.partition(":")[0] for url in requests} <= {"about", "data"}
