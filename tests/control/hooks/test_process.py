"""The process of a hook: its input, its answer and its limits."""

import asyncio
import contextlib
import json
import os
import sys

import pytest

from daqloom.control.hooks.document import Hook
from daqloom.control.hooks.process import run_hook
from support.measure.controlled_runs import HUNG_S, gone

pytestmark = pytest.mark.process

VALUES = {"transition": "start", "run_number": 7}


def hook(*command, python="", timeout=HUNG_S):
    return Hook(
        name="a",
        transition="start",
        command=command,
        python=python,
        timeout=f"{timeout} s",
    )


def program(text):
    return hook(sys.executable, "-c", text)


async def outcome(it, folder):
    return await asyncio.wait_for(run_hook(it, VALUES, folder), HUNG_S)


async def test_a_command_gets_one_object_and_answers_by_its_last_line(tmp_path):
    text = "import sys; print('first'); print(sys.stdin.read(), end='')"
    found = await outcome(program(text), tmp_path)
    assert json.loads(found.answer) == VALUES
    assert found.failure == ""
    assert found.length_s > 0


async def test_a_command_gets_the_values_in_its_environment_too(tmp_path):
    found = await outcome(hook("sh", "-c", "echo $DAQLOOM_HOOK_RUN_NUMBER; pwd"), tmp_path)
    assert found.answer == str(tmp_path)
    found = await outcome(hook("sh", "-c", "echo $DAQLOOM_HOOK_RUN_NUMBER"), tmp_path)
    assert found.answer == "7"


async def test_a_command_need_not_read(tmp_path):
    assert (await outcome(hook("true"), tmp_path)).failure == ""


async def test_an_exit_code_is_a_failure_with_the_last_line(tmp_path):
    found = await outcome(hook("sh", "-c", "echo no disk >&2; exit 3"), tmp_path)
    assert found.failure == "exit code 3: no disk"


async def test_a_missing_program_is_a_failure(tmp_path):
    found = await outcome(hook("/nowhere/logbook"), tmp_path)
    assert "/nowhere/logbook" in found.failure


async def test_a_missing_folder_is_a_failure(tmp_path):
    found = await outcome(hook("true"), tmp_path / "removed")
    assert found.failure == "it did not start: no such file or directory"


async def test_control_characters_of_an_answer_are_escaped(tmp_path):
    found = await outcome(hook("printf", r"a\033[31mb"), tmp_path)
    assert found.answer == r"a\x1b[31mb"


async def test_too_much_output_is_a_failure(tmp_path):
    found = await outcome(hook("yes"), tmp_path)
    assert found.failure == "more than 64 KiB of output"


HANGS = "sleep 3600 & echo $$ $! > pids; wait"
"""A program that hangs with a child process."""


def pids(folder):
    return [int(word) for word in (folder / "pids").read_text().split()]


async def test_a_hook_that_hangs_ends_with_its_children(tmp_path):
    found = await outcome(hook("sh", "-c", HANGS, timeout=3), tmp_path)
    assert found.failure == "no answer within 3 s"
    assert len(pids(tmp_path)) == 2
    await asyncio.wait_for(gone(*pids(tmp_path)), HUNG_S)


async def test_a_cancelled_hook_ends_with_its_children(tmp_path):
    os.mkfifo(tmp_path / "pids")
    running = asyncio.create_task(run_hook(hook("sh", "-c", HANGS), {}, tmp_path))
    both = await asyncio.to_thread(pids, tmp_path)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await asyncio.wait_for(gone(*both), HUNG_S)


async def test_a_hook_that_is_cancelled_during_its_start_ends_with_its_children(
    tmp_path, monkeypatch
):
    os.mkfifo(tmp_path / "pids")
    start = asyncio.create_subprocess_exec
    is_running, may_return = asyncio.Event(), asyncio.Event()

    async def slow(*arguments, **options):
        process = await start(*arguments, **options)
        is_running.set()
        await may_return.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)
    running = asyncio.create_task(run_hook(hook("sh", "-c", HANGS), {}, tmp_path))
    both = await asyncio.to_thread(pids, tmp_path)
    await is_running.wait()
    running.cancel()
    may_return.set()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await asyncio.wait_for(gone(*both), HUNG_S)


async def test_a_python_function_gets_a_dictionary_and_returns_an_answer(tmp_path):
    (tmp_path / "registry.py").write_text(
        "def number(transition):\n    return {'run_number': transition['run_number'] + 1}\n"
    )
    found = await outcome(hook(python="registry:number"), tmp_path)
    assert json.loads(found.answer) == {"run_number": 8}


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("def number(t):\n    raise ValueError('taken')\n", "ValueError: taken"),
        ("raise OSError('no database')\n", "OSError: no database"),
        ("number = 3\n", "'int' object is not callable"),
        ("\n", "has no attribute 'number'"),
    ],
)
async def test_a_failing_function_is_a_failure_of_one_line(tmp_path, text, failure):
    (tmp_path / "registry.py").write_text(text)
    found = await outcome(hook(python="registry:number"), tmp_path)
    assert found.failure.startswith("exit code 1: ")
    assert failure in found.failure
