"""The file of hooks: for each, the transition, the program or function, and its limits."""

import sys
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from daqloom.base.plugins import by_name
from daqloom.base.words import did_you_mean
from daqloom.scenario.file.explain import refusal
from daqloom.scenario.quantities import PositiveDuration
from daqloom.scenario.schema.part import Part, items
from daqloom.scenario.toml import read_toml
from daqloom.scenario.validation import pattern

GROUP = "daqloom.hooks"
"""Group of entry points whose names `python` accepts."""
LARGEST_FILE_BYTES = 1 << 16
MOST_HOOKS = 100
AFTER_ONLY = frozenset({"error", "lost"})
"""Events of a run that no hook can precede."""

Transition = Literal["configure", "start", "stop", "exit", "error", "lost"]
Word = Annotated[str, StringConstraints(min_length=1, max_length=4000, pattern=r"^[^\x00]*$")]


class Hook(Part):
    """A program or function that runs at a transition of a run."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$")]
    """Name in the log of the run."""
    transition: Transition
    """Transition: configure, start, stop or exit; error: the run is in error; lost: a unit is lost.
    """
    when: Literal["before", "after"] = "after"
    """Whether the hook runs before the transition, which waits for it, or after it."""
    command: tuple[Word, ...] = items(100)
    """Program with its arguments, started in the folder of the file."""
    python: Annotated[
        str,
        pattern(
            r"([A-Za-z_][\w.]{0,200}:[A-Za-z_]\w{0,99}|[A-Za-z0-9._-]{1,100})?",
            'is not a function; expected "module:function", or the name of an entry point in the '
            f"group {GROUP}",
        ),
    ] = ""
    """Function, which gets the transition as a dictionary: "module:function", or the name of an
    entry point in the group `daqloom.hooks`."""
    timeout: Annotated[PositiveDuration, Field(le=3600)] = 10.0
    """Time limit, after which the hook and its child processes are killed (s)."""
    on_failure: Literal["block", "pass"] = "pass"
    """Reaction to a failure before a transition: the transition is refused (block), or made all the
    same (pass)."""

    @property
    def words(self) -> tuple[str, ...]:
        """The command that runs the hook."""
        program = (sys.executable, "-m", "daqloom.control.hooks.call", self.python)
        return self.command or program

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.command) == bool(self.python):
            raise ValueError('a hook requires either command = ["PROGRAM"] or python = "FUNCTION"')
        if self.when == "before" and self.transition in AFTER_ONLY:
            raise ValueError(f'transition = "{self.transition}" requires when = "after"')
        if self.when == "after" and self.on_failure == "block":
            raise ValueError('on_failure = "block" requires when = "before"')
        if self.python and ":" not in self.python and self.python not in (known := by_name(GROUP)):
            otherwise = "the installed packages have no such entry point"
            hint = did_you_mean(self.python, known, otherwise)
            raise ValueError(f'python = "{self.python}" is not in the group {GROUP}; {hint}')
        return self


class HookFile(Part):
    """File of hooks, which run in its order."""

    hooks: tuple[Hook, ...] = items(MOST_HOOKS)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [hook.name for hook in self.hooks]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise ValueError(f'two hooks have the name "{twice}"')
        return self


def load_hooks(path: Path) -> tuple[Hook, ...]:
    """Read a file of hooks. Raises ScenarioError."""
    document = read_toml(path, LARGEST_FILE_BYTES)
    try:
        return HookFile.model_validate(document).hooks
    except ValidationError as error:
        raise refusal(error, str(path), {}, "", HookFile) from None
