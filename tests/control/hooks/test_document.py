"""Files of hooks: their keys, limits and mistakes."""

import sys

import pytest

from daqloom.control.hooks.document import load_hooks
from daqloom.scenario.errors import ScenarioError


def hook_file(tmp_path, *tables):
    file = tmp_path / "hooks.toml"
    file.write_text("".join(f"[[hooks]]\n{table}\n" for table in tables))
    return file


def test_a_file_lists_hooks_in_their_order(tmp_path):
    first, second = load_hooks(
        hook_file(
            tmp_path,
            'name = "mounted"\ntransition = "start"\nwhen = "before"\ncommand = ["true"]\n'
            'timeout = "200 ms"\non_failure = "block"',
            'name = "logbook"\ntransition = "lost"\npython = "logbook:record"',
        )
    )
    assert (first.name, first.words, first.timeout) == ("mounted", ("true",), 0.2)
    assert (second.when, second.on_failure, second.timeout) == ("after", "pass", 10.0)
    assert second.words == (sys.executable, "-m", "daqloom.control.hooks.call", "logbook:record")


COMMAND = 'command = ["true"]'


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        (('transition = "start"\ncommand = ["true"]',), "lacks the key name"),
        (('name = "a"\ntransition = "start"',), "requires either command"),
        ((f'name = "a"\ntransition = "start"\n{COMMAND}\npython = "a:b"',), "requires either"),
        ((f'name = "a"\ntransition = "halt"\n{COMMAND}',), "expected"),
        ((f'name = "a"\ntransition = "lost"\nwhen = "before"\n{COMMAND}',), 'when = "after"'),
        (
            (f'name = "a"\ntransition = "stop"\non_failure = "block"\n{COMMAND}',),
            'requires when = "before"',
        ),
        (('name = "a"\ntransition = "stop"\npython = "os.system()"',), "is not a function"),
        (('name = "a"\ntransition = "stop"\npython = "logbok"',), "is not in the group"),
        ((f'name = "a"\ntransition = "stop"\n{COMMAND}',) * 2, 'two hooks have the name "a"'),
        ((f'name = "a"\ntransition = "stop"\n{COMMAND}\ntimeout = "2 h"',), "timeout"),
        ((f'name = "a\\u001b"\ntransition = "stop"\n{COMMAND}',), "name"),
        (('name = "a"\ntransition = "stop"\ncommand = ["a\\u0000"]',), "command"),
        (('name = "a"\ntransition = "stop"\ncommand = ["true"]\nshell = true',), "shell"),
    ],
)
def test_a_mistake_is_a_sentence_with_file_and_key(tmp_path, tables, sentence):
    file = hook_file(tmp_path, *tables)
    with pytest.raises(ScenarioError) as error:
        load_hooks(file)
    assert str(file) in str(error.value)
    assert sentence in str(error.value)


def test_a_file_is_bounded(tmp_path):
    file = tmp_path / "hooks.toml"
    file.write_text("#" * 70_000)
    with pytest.raises(ScenarioError, match="larger than 64 KiB"):
        load_hooks(file)
