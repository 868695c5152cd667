"""Keys of [set] are validated at each point: left out where they mean nothing, else in force."""

from pathlib import Path

import pytest

from daqloom.study import StudyError
from daqloom.study.file.study import Study
from support.small_studies import written

BUFFER = "network.switch.tor.buffer"


def study(tmp_path: Path, common: str, axes: str) -> Study:
    return written(tmp_path, f'scenario = "small-rack"\n[set]\n{common}\n{axes}\n')


def test_a_key_is_valid_with_the_values_of_an_axis_or_of_variants(tmp_path: Path) -> None:
    loaded = study(tmp_path, '"run.warmup" = "2 s"', '[grid]\n"run.duration" = ["4 s", "8 s"]')
    found = [loaded.scenario(index).run for index in loaded.indices()]
    assert [(run.warmup, run.duration) for run in found] == [(2.0, 4.0), (2.0, 8.0)]
    assert loaded.notes == ()
    axes = '[variants]\nshort = { "run.duration" = "4 s" }\nlong = { "run.duration" = "8 s" }'
    loaded = study(tmp_path, '"run.warmup" = "2 s"\n"event.size" = "300 kB"', axes)
    systems = [loaded.scenario(index) for index in loaded.indices()]
    assert [each.run.warmup for each in systems] == [2.0, 2.0]
    assert [each.event.size for each in systems] == [300_000, 300_000]
    axes = '[grid]\n"event.size_distribution" = ["gaussian", "gamma"]'
    loaded = study(tmp_path, '"event.size_spread" = 0.2', axes)
    assert [loaded.scenario(index).event.size_spread for index in loaded.indices()] == [0.2, 0.2]
    assert loaded.notes == ()


MODELS = '[grid]\n"network.switch.tor.model" = ["infinite", "shared-memory", "qfx5120-48y"]'


def test_a_key_is_left_out_where_it_means_nothing_and_named_once(tmp_path: Path) -> None:
    loaded = study(tmp_path, f'"{BUFFER}" = "64 MB"\n"network.switch.tor.alpha" = 2.0', MODELS)
    found = [loaded.scenario(index).network.switch.tor for index in loaded.indices()]
    assert [tor.model for tor in found] == ["infinite", "shared-memory", "qfx5120-48y"]
    assert [tor.buffer for tor in found[1:]] == [64_000_000, 64_000_000]
    assert [tor.alpha for tor in found[1:]] == [2.0, 2.0]
    assert len(loaded.notes) == 2
    assert f"[set] {BUFFER} is left out at some points" in loaded.notes[0]
    assert 'model = "infinite"' in loaded.notes[0]
    common = f'"network.switch.tor.model" = "shared-memory"\n"{BUFFER}" = "64 MB"'
    loaded = study(tmp_path, common, MODELS)
    buffers = [loaded.scenario(index).network.switch.tor.buffer for index in loaded.indices()]
    assert buffers == [0, 64_000_000, 64_000_000]
    loaded = study(tmp_path, f'"{BUFFER}" = "64 MB"', MODELS)
    for index in loaded.indices():
        assert loaded.hasher.hash(loaded.overrides(index)) == loaded.scenario(index).hash()


def test_a_key_with_a_meaning_for_tables_by_name(tmp_path: Path) -> None:
    broken = '"faults.injected.cut.what" = "host", "faults.injected.cut.at" = "10 ms"'
    axes = f"[variants]\nwhole = {{}}\nbroken = {{ {broken} }}"
    loaded = study(tmp_path, '"faults.seed" = 7', axes)
    assert [loaded.common.additions(loaded.steps(index)) for index in loaded.indices()] == [
        {},
        {"faults.seed": 7},
    ]
    assert len(loaded.notes) == 1


@pytest.mark.parametrize(
    ("common", "axes", "sentence"),
    [
        (
            '"event.size_spread" = 0.2',
            '[grid]\n"event.rate" = ["1 kHz"]',
            r'\[set\] event.size_spread means nothing with event.size_distribution = "fixed"',
        ),
        (
            f'"{BUFFER}" = "64 MB"\n"run.warmup" = "2 s"',
            '[grid]\n"network.switch.tor.model" = ["infinite"]\n"run.duration" = ["4 s"]',
            r'\[set\] network.switch.tor.buffer is not a key of model = "infinite"',
        ),
        ('"run.warmup" = "2 s"', '[grid]\n"run.duration" = ["1 s", "4 s"]', "no time to count"),
        ('"event.sise" = "2 MB"', MODELS, 'did you mean "event.size"'),
        ('"event.size" = "2"', MODELS, "has no unit"),
    ],
)
def test_a_key_that_is_never_right_is_refused(
    tmp_path: Path, common: str, axes: str, sentence: str
) -> None:
    with pytest.raises(StudyError, match=sentence):
        study(tmp_path, common, axes)
