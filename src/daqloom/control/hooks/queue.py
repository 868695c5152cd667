"""Hooks of a run: those before a transition decide on it, those after it run one by one."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from daqloom.base.words import duration
from daqloom.control.hooks.document import Hook, Transition
from daqloom.control.hooks.process import Outcome, Values, run_hook
from daqloom.results.errors import MeasureError

MOST_WAITING = 1000
"""Limit on hooks after transitions that wait for their turn; later ones are left out."""
HIGHEST_RUN = 2**53


class Hooks:
    """Hooks of a run, started in the folder of their file. `log` adds a sentence to its log."""

    def __init__(self, hooks: Sequence[Hook], folder: Path, log: Callable[[str], None]) -> None:
        self._hooks, self._folder, self._log = hooks, folder, log
        self._waiting: deque[tuple[Hook, Values]] = deque()
        self._worker: asyncio.Task[None] | None = None

    def has_before(self, transition: Transition) -> bool:
        """Return whether a transition has to wait for hooks."""
        return bool(self._chosen(transition, "before"))

    async def before(self, transition: Transition, values: Values) -> Values:
        """Run the hooks before a transition; return the values, with the run number that a hook has
        answered. Raises MeasureError if a hook blocks the transition."""
        for hook in self._chosen(transition, "before"):
            outcome = await self._run(hook, values)
            if outcome.failure and hook.on_failure == "block":
                raise MeasureError(
                    f'hook "{hook.name}" blocks {transition}: {outcome.failure}; correct the hook, '
                    'or set its on_failure = "pass"'
                )
            if (number := run_number_in(outcome)) is not None:
                values = {**values, "run_number": number}
        return values

    def after(self, transition: Transition, values: Values) -> None:
        """Run the hooks after a transition when those of earlier ones have ended."""
        for hook in self._chosen(transition, "after"):
            if len(self._waiting) < MOST_WAITING:
                self._waiting.append((hook, values))
            else:
                self._log(f'hook "{hook.name}" is left out: {MOST_WAITING:,} hooks wait')
        if self._waiting and (self._worker is None or self._worker.done()):
            self._worker = asyncio.create_task(self._work())

    async def end(self, *, at_once: bool = False) -> None:
        """Wait for the hooks that wait or run, each up to its time limit, or kill them at once."""
        if self._worker:
            if at_once:
                self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    def _chosen(self, transition: Transition, when: str) -> list[Hook]:
        found = [hook for hook in self._hooks if hook.transition == transition]
        return [hook for hook in found if hook.when == when]

    async def _work(self) -> None:
        while self._waiting:
            await self._run(*self._waiting.popleft())

    async def _run(self, hook: Hook, values: Values) -> Outcome:
        about = {"hook": hook.name, "when": hook.when}
        outcome = await run_hook(hook, {**about, **values}, self._folder)
        what = f'hook "{hook.name}" {hook.when} {hook.transition}'
        took = duration(outcome.length_s)
        if outcome.failure:
            self._log(f"{what} failed after {took}: {outcome.failure}")
        else:
            self._log(f"{what} took {took}{': ' if outcome.answer else ''}{outcome.answer}")
        return outcome


def run_number_in(outcome: Outcome) -> int | None:
    """Return the run number that a hook has answered as `{"run_number": N}`; None without one."""
    try:
        answer = json.loads(outcome.answer)
    except (RecursionError, ValueError):
        return None
    number = answer.get("run_number") if isinstance(answer, dict) else None
    if type(number) is not int or outcome.failure:
        return None
    return number if 0 < number < HIGHEST_RUN else None
