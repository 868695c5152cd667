"""Generated fragments: their bytes, their sizes, their files."""

from types import SimpleNamespace

import numpy as np
import pytest

from daqloom.base.output import OutputError
from daqloom.data import Mfp, generators
from daqloom.data.generator import write_files
from daqloom.deployment.scenarios import load
from daqloom.scenario.errors import ScenarioError
from support.small_packets import small


def splitmix(source: int, event: int) -> int:
    """The hash that generated fragments begin with, as splitmix64 publishes it."""
    z = event + 0x9E3779B97F4A7C15 * (source + 1) & 2**64 - 1
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    z = (z ^ z >> 27) * 0x94D049BB133111EB & 2**64 - 1
    return z ^ z >> 31


def test_a_generated_fragment_is_words_of_a_hash_cut_off_at_its_size():
    source = generators(small("event.fragment_size=19 B", 'event.fragment_sizes="fixed"'))[3]
    mfp = Mfp.decode(source.generate(1_000))
    assert (mfp.source_id, mfp.event_id, len(mfp)) == (3, 1_000, 50)
    for place, (_, payload) in enumerate(mfp):
        first = splitmix(3, 1_000 + place)
        words = [first + i * 0x9E3779B97F4A7C15 & 2**64 - 1 for i in range(3)]
        assert bytes(payload) == b"".join(word.to_bytes(8, "little") for word in words)[:19]


def test_sources_of_a_scenario_have_its_sizes():
    groups = "[{sources = 4, share = 1.0}, {sources = 4, share = 3.0}]"
    sources = generators(small(f"event.groups={groups}", "event.fragment_size=100 B"))
    assert [source.source_id for source in sources] == list(range(8))
    # A quarter of 8 · 100 B in four sources, three quarters in the other four.
    for source, mean in zip(sources, [50] * 4 + [150] * 4, strict=True):
        sizes = [Mfp.decode(source.generate(50 * n)).sizes for n in range(20)]
        assert np.mean(sizes) == pytest.approx(mean, abs=5 * (mean / 1000) ** 0.5)


def test_sizes_follow_the_seed_up_to_the_largest():
    first, again = (generators(small(), seed=5)[0].generate(0) for _ in range(2))
    assert first == again
    assert generators(small(), seed=6)[0].generate(0) != first
    scenario = small("event.fragment_size=60 kB", "event.packing=65535")
    assert 65_535 * 60_000 < generators(scenario)[0].largest < 2**32
    with pytest.raises(ScenarioError, match="atlas-lab pulls fragments"):
        generators(load("atlas-lab"))


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("event.packing=65536", "event.packing = 65536: an MFP counts its fragments in"),
        ("event.fragment_size=70 kB", "event.fragment_size: a source's fragments have 70000 bytes"),
    ],
)
def test_a_scenario_whose_mfps_cannot_be_is_refused(override, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        generators(small(override))


def test_no_file_is_begun_where_there_is_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(OutputError, match=r"has 1e-06 GB left, and the files take .*e-05 GB"):
        write_files(generators(small())[:1], tmp_path, 10)
    assert list(tmp_path.iterdir()) == []
