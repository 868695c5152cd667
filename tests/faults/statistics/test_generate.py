"""Generated logs: their links, seeds and order."""

import numpy as np
import pytest

from daqloom.faults import FaultsError
from daqloom.faults.statistics.by_link import by_link, dispersion
from daqloom.faults.statistics.generate import Truth, generate, link_rates

LINKS = [f"link {n}" for n in range(200)]


def test_links_that_fail_alike_have_no_dispersion() -> None:
    truth = Truth(failures=2000, in_tests=0, flapping=0, link_shape=1e6, repair_median_s=1)
    found = generate(LINKS, truth, 5)
    differ = dispersion(by_link(found, truth.end_s), len(LINKS))
    assert differ is not None
    assert differ.p_value > 0.01
    assert np.ptp(link_rates(200, truth, np.random.default_rng(1))) < 0.01 / 200


def test_the_same_seed_gives_the_same_log_of_links() -> None:
    truth = Truth(failures=50, in_tests=20)
    assert generate(LINKS, truth, 7) == generate(LINKS, truth, 7)
    assert generate(LINKS, truth, 7) != generate(LINKS, truth, 8)
    for earlier, later in zip(*(generate(LINKS, truth, 7)[k:] for k in (0, 1)), strict=False):
        assert earlier.begin_s <= later.begin_s
    with pytest.raises(FaultsError, match="at least one link"):
        generate([], Truth(), 1)
