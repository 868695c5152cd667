"""Pages: their scripts, and escaped names."""

import re
from pathlib import Path

import pytest

from daqloom.base.output import OutputError
from daqloom.report.figure import Axis, Figure, Legend, Line, Panel, Rule, Text
from daqloom.report.page import Section, page, write_pdf

DOT = Figure([Panel([Line([1], [1])])], (2, 1))
EVIL = "</script><script>alert(1)</script><!--<script>"


def test_a_figure_is_a_picture_or_a_plot_and_never_both() -> None:
    turned = Figure([Panel([Line([1], [1])], title="Turned")], (2, 1))
    bars = Section("Bars", ["", "b"], figure=DOT, described="Bars & more", turned=turned)
    still = page("A title", "and more", [bars], interactive=False)
    assert "<script" not in still
    assert still.count("<img") == 1
    assert 'alt="Bars &amp; more" src="data:image/svg+xml;base64,' in still
    moving = page("A title", "and more", [bars])
    assert "<img" not in moving
    assert moving.count('<div class="figure"') == 1
    assert "Turned" in moving
    assert "<p></p>" not in still + moving
    assert not re.search(r'<p class="[^"]*"></p>', still + moving)


def test_the_answer_and_one_figure_stand_above_the_details() -> None:
    first = Section("First", ["A caption."], figure=DOT)
    rest = [Section(f"Part {number}", ["Text."]) for number in range(3)]
    text = page("A title", "and more", rest, ["High & low."], [first], interactive=False)
    assert '<p class="answer">High &amp; low.</p>' in text
    order = ["<h1", "High &amp; low.", ">First<", "<img", 'id="details"', "<nav", 'id="part1"']
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)
    assert re.findall(r"<h(\d).*?>", text.split("<body>")[1]) == ["1", "2", "2", "3", "3", "3"]
    assert 'id="details"' not in page("A title", "and more", rest)


def test_a_command_in_a_sentence_is_code() -> None:
    text = page("A title", "and more", [Section("", ['Try `daqloom --set a="1 <b>"`, then.'])])
    assert "Try <code>daqloom --set a=&quot;1 &lt;b&gt;&quot;</code>, then." in text


def test_a_short_cell_stays_whole_and_a_long_one_may_be_broken() -> None:
    text = page("", "", [Section("", head=["a", "b"], rows=[["77 %", "the load explains it"]])])
    assert "<td>77\N{NO-BREAK SPACE}%</td><td>the load explains it</td>" in text


@pytest.mark.process
def test_a_page_is_written_as_pdf_with_vectors_and_without_a_request(tmp_path: Path) -> None:
    marks = [Line([0, 1], [0, 1])]
    evil = Section("F", ["<img src=file:///etc/hostname>"], figure=Figure([Panel(marks)], (4, 3)))
    write_pdf(tmp_path / "a.pdf", page("A title", "", [evil], interactive=False))
    made = (tmp_path / "a.pdf").read_bytes()
    assert made.startswith(b"%PDF-")
    assert b"/Subtype /Image" not in made  # the figure is drawn by lines


def test_without_pango_the_pdf_is_refused_with_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Missing:
        def __getattr__(self, name: str) -> None:
            raise OSError("cannot load library 'libgobject-2.0-0'")

    monkeypatch.setattr("daqloom.report.page.weasyprint", Missing())
    with pytest.raises(OutputError, match=r"pango's library cannot be loaded; .*libpangoft2"):
        write_pdf(tmp_path / "a.pdf", "<p>")
    assert not any(tmp_path.iterdir())


def test_names_from_a_scenario_cannot_break_out_of_the_page() -> None:
    marks = [Line([1], [1], EVIL), Rule(1, EVIL), Text(1, 1, [EVIL])]
    panel = Panel(marks, Axis(EVIL, ticks=[1], names=[EVIL]), title=EVIL, legend=Legend())
    shown = Section(EVIL, [EVIL], figure=Figure([panel], (4, 3)), head=[EVIL], rows=[[EVIL]])
    text = page(EVIL, EVIL, [shown], [EVIL])
    assert "alert(1)</script>" not in text
    assert text.count("<script") == text.count("</script>")
    [json] = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert "<" not in json
