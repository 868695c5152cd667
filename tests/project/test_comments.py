"""`///` documents a declaration, `//` says anything else.

Right above a declaration of a namespace or class stands `///`, behind it `///<`. Inside functions
there is only `//`. Headings, `// ---- what follows`, belong to no declaration.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from support.repository import ROOT

_TOKEN = re.compile(
    r"""//[^\n]* | \#(?:\\\n|[^\n])* | [{}();]
    | R"(?P<end>[^(\n]*)\(.*?\)(?P=end)" | "(?:\\.|[^"\\\n])*"
    | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.VERBOSE,
)


class Comment(NamedTuple):
    line: int  # from 0
    text: str
    code: str  # before it on its line
    declares: bool  # declarations stand there: of a namespace or class, and not between parentheses


def declares(head: str) -> bool:
    """Whether what stands in braces after `head` are declarations."""
    head = re.sub(r"\b(public|private|protected)\s*:|\[\[.*?\]\]|alignas\([^)]*\)", " ", head)
    while (shorter := re.sub(r"<[^<>]*>", " ", head)) != head:
        head = shorter
    head = re.sub(r"^template\b", " ", head.strip()).strip()
    if re.match(r'(inline )?namespace\b|concept\b|extern ""$', head):
        return True
    return bool(re.match(r"(class|struct|union|enum)\b[^(=]*$", head))


def comments(text: str) -> Iterator[Comment]:
    begins = [0, *(match.end() for match in re.finditer("\n", text))]
    scopes, parentheses, head, at = [True], [0], "", 0
    for match in _TOKEN.finditer(text):
        head, at, token = head + text[at : match.start()], match.end(), match[0]
        line = bisect_right(begins, match.start()) - 1
        code = text[begins[line] : match.start()]
        if token.startswith("//"):
            yield Comment(line, token, code.strip(), scopes[-1] and parentheses[-1] == 0)
        elif token.startswith("#"):
            head = ""
        elif token == "{":
            scopes.append(declares(head) and (scopes[-1] or "(" not in head))
            parentheses.append(0)
            head = ""
        elif token == "}":
            scopes.pop()
            parentheses.pop()
            head = ""
        elif token == ";" and parentheses[-1] == 0:
            head = ""
        else:
            parentheses[-1] += {"(": 1, ")": -1}.get(token, 0)
            head += token if token in "();" else '""'


def documents(lines: list[str], comment: Comment) -> bool:
    """Whether the comment belongs to a declaration: that before it on its line, or below it."""
    if not comment.declares or re.match(r"// (----|NOLINT|clang-format)", comment.text):
        return False
    if comment.code:
        return not comment.code.startswith(("#", "}", "static_assert"))
    return not re.match(r"$|#|\}|//|static_assert", lines[comment.line + 1].strip())


def violations(text: str) -> list[str]:
    lines, found = text.split("\n"), []
    every = list(comments(text))
    top = 0
    while lines[top].startswith("//"):
        top += 1
    section = -1  # the line of a heading, or of what continues it
    for each in every:
        marked = each.text.startswith("///< " if each.code else "///")
        if each.line < top:
            continue
        if each.text.startswith("// ----") or (section == each.line - 1 and not marked):
            section = each.line
        elif documents(lines, each) and not marked and not each.text.startswith("///<"):
            found.append(f"{each.line + 1}: {each.text}: documents a declaration: write ///")
        elif not each.declares and each.text.startswith("///"):
            found.append(f"{each.line + 1}: {each.text}: documents no declaration: write //")
    return found


def test_a_declaration_is_documented_by_three_slashes():
    found = [
        f"{path.relative_to(ROOT)}:{violation}"
        for path in sorted((ROOT / "engine").glob("**/*.?pp"))
        for violation in violations(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "\n// The number.\nint number();\n",
        "\nint number = 0;  // of them\n",
        "namespace a {\nstruct A {\n    int number;  // of them\n};\n}\n",
        "struct A {\n  private:\n    // The number.\n    int number_;\n};\n",
        "enum class A : int {\n    b,  // the first\n};\n",
        "template <class T>\nconcept A = requires(T t) {\n    t.go();  // at once\n};\n",
        "void a() {\n    /// The number.\n    int number = 0;\n}\n",
        "void a() {\n    go();  ///< at once\n}\n",
        "\n// A section of two\n// lines.\nint number();\n",
    ],
)
def test_checker_reports_the_wrong_slashes(text):
    assert len(violations(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "// What the file is for.\nint number();\n",
        "\n/// The number.\nint number();  ///< of them\n",
        "\nvoid a() {\n    // At once.\n    go();  // now\n}\n",
        "\n// ---- numbers\nint number();\n",
        "\n// ---- numbers that are very\n// large\nint number();\n",
        "\n// Alone.\n\nint number();\n",
        "\nstatic_assert(sizeof(int) == 4);  // everywhere\n",
        'namespace a {\nconst char* b = "{ // ";  ///< not a comment\n}  // namespace a\n',
        "struct A {\n    void go() {\n        stop();  // later\n    }\n};\n",
        "\nconst auto a = [](int b) {\n    return b;  // as it is\n};\n",
        "\nA a{1,  // first\n    2};\n",
        "enum class A {\n    b,  ///< the first, of which\n        ///< there is more to say\n};\n",
    ],
)
def test_checker_accepts_the_right_slashes(text):
    assert violations(text) == []
