"""Shipped study that derives buffers from PortXmitWait: it returns the configured ones."""

import numpy as np
import pytest

from daqloom.report.study import port_wait as study_port_wait
from daqloom.study.file.load import load_study
from support.figures import texts
from support.small_studies import computed


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return computed(load_study("ib-buffer-probe", quick=True), tmp_path_factory.mktemp("store"))


def test_every_point_gives_the_configured_buffer(found):
    least = found["inferred_buffer_bytes.least"]
    most = found["inferred_buffer_bytes.most"]
    assert bool((least <= found["network.switch.buffer"]).all())
    assert bool((most >= found["network.switch.buffer"]).all())
    width = (most - least).isel(by=0, seed=0)
    assert (width.sel({"flows.stream.size": 16}) == 0).all()  # packets of a block
    assert (width.sel({"flows.stream.size": 4096}) == 64 * 64).all()  # of 65


def test_the_smallest_burst_that_makes_the_host_wait_is_the_slack_of_the_buffer(found):
    assert (found["boundary_status"] == "found").all()
    burst_s = (found["boundary"] + 26 * np.ceil(found["boundary"] / 4096) + 20) * 8 / 100e9
    # Packets that fit, in time on the wire, less the loop; a step of the search is 1 KiB.
    packet = np.array([62, 4142])
    fitting = np.array([[kib * 16 // blocks for blocks in (1, 65)] for kib in (16, 64, 128)])
    loop_s = 2 * 170e-9 + 90e-9 + (np.minimum(packet, 64) + packet + 8) * 8 / 100e9
    slack_s = fitting * packet * 8 / 100e9 - loop_s
    over_s = burst_s.isel(by=0, seed=0, **{"flows.stream.service_level": 0}).values - slack_s
    assert (over_s > 0).all()
    assert (over_s <= (1024 + 26) * 8 / 100e9).all()


def test_the_report_compares_both_where_a_study_has_them(found):
    section = study_port_wait.section(found)
    assert section.sentences == [
        "PortXmitWait gives the configured buffer at 12 of 12 points: exact to the block of 64 B "
        "at 6, within 4 KiB at all of them."
    ]
    assert len(section.rows) == 12
    assert section.rows[0] == ["16 KiB", "0.016 kB", "0", "16,384", "16,384", "as configured"]
    assert {"configured buffer (KiB)", "inferred buffer (KiB)"} <= texts(section.figure)
    assert study_port_wait.section(found.drop_vars("inferred_buffer_bytes.most")) is None


def test_other_buffers_are_not_as_configured(found):
    wrong = found.copy(deep=True)
    wrong["inferred_buffer_bytes.least"][0, 0, 0, 0, 0] = 20_000
    wrong["inferred_buffer_bytes.most"][0, 0, 0, 0, 0] = 20_000
    wrong["inferred_buffer_bytes.most"][0, 1, 0, 0, 0] = np.nan
    section = study_port_wait.section(wrong)
    assert section.sentences[0].startswith("PortXmitWait gives the configured buffer at 10 of 11")
    assert section.sentences[1].startswith("It gives no bound at 1 of the points")
    assert section.rows[0][-1] == "not as configured"
    assert section.rows[4][-1] == "–"
