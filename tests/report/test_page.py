"""Pages: which scripts they carry, and what names in them cannot do."""

from __future__ import annotations

from daqloom.report.page import page, picture, section, table


def test_a_page_of_pictures_alone_carries_no_script() -> None:
    text = page("A title", "and more", [picture("Bars", "", b"png", "Bars"), table(["a"], [["b"]])])
    assert "<script" not in text
    assert len(text) < 10_000


def test_a_figure_without_a_caption_has_no_empty_paragraph() -> None:
    from plotly.graph_objects import Figure

    parts = [picture("Bars", "", b"png", "Bars"), section("Turn", "", Figure())]
    assert "<p></p>" not in page("A title", "and more", parts)
    captioned = picture("Bars", "High & low.", b"png", "Bars", answer=True)
    assert '<p class="answer">High &amp; low.</p>' in captioned


def test_names_from_a_scenario_cannot_break_out_of_the_page() -> None:
    from plotly.graph_objects import Figure, Scatter

    evil = "</script><script>alert(1)</script>"
    text = page(evil, evil, [section(evil, evil, Figure(Scatter(y=[1], name=evil)))])
    assert "alert(1)</script>" not in text
    assert text.count("<script") == text.count("</script>")
