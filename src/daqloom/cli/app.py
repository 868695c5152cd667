"""Base classes of all commands of daqloom: plain help text, with commands grouped by purpose."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command_name
from typer.models import CommandInfo

from daqloom.base.words import closest, join_names, printable
from daqloom.cli.console.terminal import plain_failures

DESCRIBED = "Describe, analyse, simulate"
STUDIES = "Studies"
LIVE = "Real event builders"
NETWORKS_AND_DATA = "Networks and data"
OTHERS = "Commands"
WHOLE = 1000
"""Maximum characters of a command's summary in a group's help: it wraps, and is not truncated."""

Callback = TypeVar("Callback", bound=Callable[..., Any])


class Command(TyperCommand):
    """A command that rejects an option given twice (Typer would drop the first value). Expected
    failures print one sentence, which ends in `saved` on Ctrl-C, and set an exit code."""

    def __init__(self, *args: Any, saved: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self._saved = saved

    def invoke(self, ctx: Any) -> Any:
        """See `TyperCommand`."""
        with plain_failures(self._saved):
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See `TyperCommand`."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(list(args))
            for each in order:
                takes_one = isinstance(each, TyperOption) and not (each.is_flag or each.multiple)
                if takes_one and order.count(each) > 1:
                    ctx.fail(f"{each.opts[-1]} is given twice; give it once")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:  # of a choice: with the kind of pydantic's error
            error.message = error.message.removeprefix("Value error, ")
            raise


class Commands(typer.Typer):
    """A group whose commands are of the class `Command`."""

    def command(
        self, name: str | None = None, *, saved: str = "nothing was saved", **options: Any
    ) -> Callable[[Callback], Callback]:
        """Register a command as `typer.Typer` does; see `Command` for `saved`."""
        return super().command(name, **{"cls": partial(Command, saved=saved)} | options)


class Group(TyperGroup):
    """A group of commands, whose help has one section for each panel that a command names."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """See `TyperGroup`. For an unknown command, the error suggests commands with a similar
        name, else those whose help contains the word."""
        if not args or args[0].startswith("-") or self.get_command(ctx, args[0]):
            return super().resolve_command(ctx, args)
        known = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        about = re.compile(rf"\b{re.escape(args[0])}", re.IGNORECASE)
        close = closest(args[0], known)
        meant = (
            [close] if close else [k for k in known if about.search(self.commands[k].help or "")]
        )
        paths = [f"`{ctx.command_path} {name}`" for name in meant or known]
        ctx.fail(
            f'there is no command "{printable(args[0])}"; '
            + (f"did you mean {' or '.join(paths)}?" if meant else f"there are {join_names(paths)}")
        )

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See `TyperGroup`."""
        panels: dict[str, list[tuple[str, str]]] = {}
        known = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        for name, command in known:
            if not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                of_panel = panels.setdefault(panel if isinstance(panel, str) else OTHERS, [])
                of_panel.append((name, command.get_short_help_str(WHOLE)))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


def group(*, cls: type[TyperGroup] = Group, **options: Any) -> Commands:
    """Make a group of commands. Help without markup keeps the layout of examples and starts
    faster."""
    return Commands(cls=cls, no_args_is_help=True, rich_markup_mode=None, **options)


def narrow(commands: typer.Typer, arguments: Sequence[str]) -> bool:
    """Remove all commands but the one that `arguments` start with; return whether there is one.

    Typer would build parsers for all of them: a tenth of the time of `daqloom analyse`.
    """
    alone = [each for each in commands.registered_commands if _name(each) in arguments[:1]]
    groups = [each for each in commands.registered_groups if each.name in arguments[:1]]
    if not (alone or groups):
        return False
    commands.registered_commands, commands.registered_groups = alone, groups
    for each in groups:
        if each.typer_instance:
            narrow(each.typer_instance, arguments[1:])
    return True


def _name(command: CommandInfo) -> str:
    return command.name or get_command_name(getattr(command.callback, "__name__", ""))
