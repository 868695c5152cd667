"""Papers whose numbers have records."""

from dataclasses import dataclass
from typing import Literal

PaperName = Literal[
    "atlas-buffers", "software-switch", "lhcb-failures", "lhcb-flit-level", "lhcb-event-builder"
]


@dataclass(frozen=True)
class Paper:
    """A publication, and the words for it in lists."""

    short: str
    citation: str


PAPERS: dict[PaperName, Paper] = {
    "atlas-buffers": Paper(
        "ATLAS buffers",
        "M. E. Pozo Astigarraga et al., Benchmarking Data Acquisition event building network "
        "performance for the ATLAS HL-LHC upgrade",
    ),
    "software-switch": Paper("software switch", "Lossless software switch, slides, 2015"),
    "lhcb-failures": Paper(
        "LHCb failures",
        "E. Stein et al., Measuring Performance Under Failures in the LHCb Data Acquisition "
        "Network, poster",
    ),
    "lhcb-flit-level": Paper(
        "LHCb flit level",
        "T. Colombo et al., FLIT-level InfiniBand network simulations of the DAQ system of the "
        "LHCb experiment for Run-3",
    ),
    "lhcb-event-builder": Paper(
        "LHCb event builder",
        "F. Pisani et al., Design and Commissioning of the First 32-Tbit/s Event-Builder",
    ),
}
