"""Folder of secrets of a user in a user namespace."""

import os
import shutil
import subprocess
import sys

import pytest

PRINTS = "from daqloom.control.calls.registry import runs_folder; print(runs_folder())"


@pytest.mark.process
def test_the_root_of_a_user_namespace_has_the_folder_of_the_user_outside():
    command = [shutil.which("unshare") or "unshare", "--user", "--map-user=77", "--map-group=77"]
    command += [sys.executable, "-c", PRINTS]
    env = {key: value for key, value in os.environ.items() if key != "XDG_RUNTIME_DIR"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    if "unshare failed" in done.stderr:
        pytest.skip("this machine gives ordinary users no namespaces")
    assert done.stdout == f"/tmp/daqloom-{os.getuid()}\n", done.stderr
