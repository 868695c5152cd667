"""Pages: their scripts, and escaped names."""

import re

from daqloom.report.figure import Axis, Figure, Legend, Line, Panel, Rule, Text
from daqloom.report.page import Section, page

DOT = Figure([Panel([Line([1], [1])])], (2, 1))
EVIL = "</script><script>alert(1)</script><!--<script>"


def test_a_page_of_pictures_alone_carries_no_script_and_no_empty_paragraph() -> None:
    bars = Section("Bars", picture=DOT, described="Bars", head=["a"], rows=[["b"]])
    text = page("A title", "and more", [bars])
    assert "<script" not in text
    assert len(text) < 10_000
    parts = [Section("Bars", [""], picture=DOT, described="Bars"), Section("Turn", figure=DOT)]
    assert "<p></p>" not in page("A title", "and more", parts)
    captioned = page("", "", [Section("Bars", ["High & low."], is_answer=True)])
    assert '<p class="answer">High &amp; low.</p>' in captioned


def test_names_from_a_scenario_cannot_break_out_of_the_page() -> None:
    marks = [Line([1], [1], EVIL), Rule(1, EVIL), Text(1, 1, [EVIL])]
    panel = Panel(marks, Axis(EVIL, ticks=[1], names=[EVIL]), title=EVIL, legend=Legend())
    shown = Section(EVIL, [EVIL], figure=Figure([panel], (4, 3)), head=[EVIL], rows=[[EVIL]])
    text = page(EVIL, EVIL, [shown], [EVIL])
    assert "alert(1)</script>" not in text
    assert text.count("<script") == text.count("</script>")
    [json] = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert "<" not in json
