"""Recipe of Spack for daqloom, from the git tree that contains this file.

Lower bounds are those of pyproject.toml and cmake/; tests/project/test_packaging.py compares them.
"""

from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class Daqloom(PythonPackage):
    """An open laboratory for event-building networks: analyse, simulate, measure."""

    git = Path(__file__).resolve().parents[6].as_uri()

    license("Apache-2.0")

    version("main", branch="main")

    variant("figures", default=True, description="figures and reports")
    variant("studies", default=False, description="tables of studies")
    variant("cluster", default=False, description="studies on all cores or a Dask cluster")
    variant("live", default=True, description="measurements")
    variant("switch", default=False, description="software switch")

    conflicts("+cluster~studies")
    conflicts("+switch~live")

    depends_on("cxx", type="build")
    conflicts("%gcc@:11")
    conflicts("%clang@:15")

    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("git", type="build")  # version and commit
    depends_on("py-scikit-build-core@1.0:", type="build")
    depends_on("py-nanobind@3.1:", type="build")
    depends_on("tl-expected", type="build")
    depends_on("fmt", type=("build", "link"))
    depends_on("libfabric", type=("build", "run"))  # loaded when a transport of it is chosen

    depends_on("py-pydantic@2.7:", type=("build", "run"))
    depends_on("py-typer@0.12:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-numpy@1.26:", type=("build", "run"))

    with when("+figures"):
        depends_on("py-matplotlib@3.8:", type=("build", "run"))
        depends_on("py-plotly@5.20:", type=("build", "run"))
        depends_on("py-jinja2@3.1:", type=("build", "run"))

    with when("+studies"):
        depends_on("py-scipy@1.11:", type=("build", "run"))
        depends_on("py-xarray@2024.1:", type=("build", "run"))
        depends_on("py-pandas@2.1:", type=("build", "run"))
        depends_on("py-pyarrow@15:", type=("build", "run"))

    with when("+cluster"):
        depends_on("py-distributed@2024.1:", type=("build", "run"))

    with when("+live"):
        depends_on("py-grpcio@1.60:", type=("build", "run"))
        depends_on("py-cryptography@42:", type=("build", "run"))
        depends_on("py-prometheus-client@0.20:", type=("build", "run"))

    with when("+switch"):
        depends_on("dpdk@22.11:", type=("build", "link", "run"))
        depends_on("pkgconfig", type="build")

    def config_settings(self, spec, prefix):
        """Options of the build backend."""
        return {"cmake.define.DAQLOOM_SWITCH": "ON" if spec.satisfies("+switch") else "OFF"}

    def setup_run_environment(self, env):
        """Make libfabric known to the loader, which daqloom asks for it by name."""
        env.prepend_path("LD_LIBRARY_PATH", self.spec["libfabric"].prefix.lib)
