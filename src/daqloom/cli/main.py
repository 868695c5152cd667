"""The `daqloom` command with all subcommands."""

from daqloom.cli import conclusions
from daqloom.cli.app import DESCRIBED, LIVE, NETWORKS_AND_DATA, STUDIES
from daqloom.cli.calibrate import calibrate
from daqloom.cli.compare import compare
from daqloom.cli.data import app as data_app
from daqloom.cli.describe import app
from daqloom.cli.doctor import doctor
from daqloom.cli.explain import explain
from daqloom.cli.faults import app as faults_app
from daqloom.cli.lab import app as lab_app
from daqloom.cli.measure import control, measure, unit
from daqloom.cli.options import IN_STORE
from daqloom.cli.report import report
from daqloom.cli.reproduce import reproduce
from daqloom.cli.runs import app as runs_app
from daqloom.cli.schema import schema
from daqloom.cli.servers import console, mcp
from daqloom.cli.study import app as study_app
from daqloom.cli.switch import app as switch_app
from daqloom.cli.topology import app as topology_app

__all__ = ["app"]

for conclusion in (conclusions.levels, conclusions.fit, conclusions.compare):
    study_app.command()(conclusion)
app.command(rich_help_panel=DESCRIBED)(compare)
app.command(rich_help_panel=DESCRIBED)(explain)
app.command(rich_help_panel=DESCRIBED)(schema)
app.command(saved="nothing was written", rich_help_panel=DESCRIBED)(mcp)
app.add_typer(study_app, name="study", rich_help_panel=STUDIES)
app.command(saved="complete files stay in the output folder", rich_help_panel=STUDIES)(report)
app.command(saved=IN_STORE, rich_help_panel=STUDIES)(reproduce)
app.command(rich_help_panel=LIVE)(measure)
app.add_typer(control, name="control", rich_help_panel=LIVE)
app.add_typer(runs_app, name="runs", rich_help_panel=LIVE)
app.command(saved="the unit has ended", rich_help_panel=LIVE)(unit)
app.add_typer(switch_app, name="switch", rich_help_panel=LIVE)
app.add_typer(lab_app, name="lab", rich_help_panel=LIVE)
app.command(saved="nothing was written", rich_help_panel=LIVE)(console)
app.command(rich_help_panel=LIVE)(doctor)
app.command(rich_help_panel=LIVE)(calibrate)
app.add_typer(topology_app, name="topology", rich_help_panel=NETWORKS_AND_DATA)
app.add_typer(faults_app, name="faults", rich_help_panel=NETWORKS_AND_DATA)
app.add_typer(data_app, name="data", rich_help_panel=NETWORKS_AND_DATA)
