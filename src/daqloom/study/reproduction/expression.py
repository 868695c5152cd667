"""Expressions of named numbers, such as "without / with - 1". An expression is parsed as Python and
evaluated by a table of its few allowed forms; nothing else is executed."""

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

LONGEST = 200
FUNCTIONS = frozenset({"abs", "min", "max"})
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}
_POWERS = 9
"""Largest exponent."""


def names(text: str) -> set[str]:
    """Return the names in an expression. Raises ValueError if it is no expression."""
    found = {node.id for node in ast.walk(_parse(text)) if isinstance(node, ast.Name)}
    return found - FUNCTIONS


def evaluate(
    text: str, values: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]
) -> Any:
    """Return the value of an expression; `names` has checked it."""

    def value(node: Any) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return values[node.id]
            case ast.UnaryOp():
                return _OPERATORS[type(node.op)](value(node.operand))
            case ast.BinOp():
                return _OPERATORS[type(node.op)](value(node.left), value(node.right))
            case _:
                return functions[node.func.id](*map(value, node.args))

    return value(_parse(text).body)


@functools.cache
def _parse(text: str) -> ast.Expression:
    try:
        if len(text) > LONGEST:
            raise ValueError
        parsed = ast.parse(text.strip(), mode="eval")
        _check(parsed.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            f'value = "{text[:80]}" is no expression; expected names of terms and numbers with '
            '+ - * / **, abs, min and max, such as "without / with_barrier - 1"'
        ) from None
    return parsed


def _check(node: Any) -> None:
    """Raise ValueError for a form that is not allowed."""
    match node:
        case ast.Name():
            return
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int() as power)):
            if not 0 <= power <= _POWERS:
                raise ValueError
            _check(node.left)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            _check(node.left)
            _check(node.right)
        case ast.UnaryOp(op=ast.USub()):
            _check(node.operand)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
            _check(argument)
        case _:
            raise ValueError
