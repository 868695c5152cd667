"""Program of a child process for tasks, with limits on CPU time, memory and files.

Standard input has one JSON object a line: the `task`, its `arguments`, the folders (`folder`) whose
files may be read, and the limits `cpu_s` and `most_bytes` (of an answer). Standard output has one
JSON object a line: `progress` (a share, 0 to 1), and at the end of each task `answer`, or `failure`
(one sentence).
"""

import json
import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from daqloom.scenario import files
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.package_files import shipped_folder
from daqloom.tasks.failures import escape, failure_of

MOST_MEMORY_BYTES = 2 << 30

Answer = Mapping[str, Any]
Tasks = Mapping[str, Callable[..., Answer]]


def report(share: float) -> None:
    """Print the progress of the present task."""
    _print({"progress": share})


def carry_out(tasks: Tasks) -> None:
    """Carry out the tasks of standard input until its end."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    is_confined = False
    for line in sys.stdin:
        request = json.loads(line)
        if not is_confined:
            shipped = map(shipped_folder, ("scenarios", "studies"))
            files.confine(*map(Path, request["folder"]), *shipped)
            is_confined = True
        used = resource.getrusage(resource.RUSAGE_SELF)
        until_s = int(used.ru_utime + used.ru_stime) + 1 + request["cpu_s"]
        resource.setrlimit(resource.RLIMIT_CPU, (until_s, resource.RLIM_INFINITY))
        try:
            _print({"answer": _whole(tasks[request["task"]](**request["arguments"]), request)})
        except Exception as error:
            found = failure_of(error)
            if found is None:
                raise
            _print({"failure": escape(found[0])})


def _whole(answer: Answer, request: Mapping[str, Any]) -> Answer:
    """Return the answer. Raises ScenarioError if it is too large."""
    if len(json.dumps(answer)) > request["most_bytes"]:
        raise ScenarioError(
            f"the answer is larger than {request['most_bytes'] >> 10} KiB; use the command line "
            "with --json, or a smaller system"
        )
    return answer


def _print(record: Answer) -> None:
    print(json.dumps(record, allow_nan=False), flush=True)
