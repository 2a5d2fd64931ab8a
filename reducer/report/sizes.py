"""How large a tree is, in numbers that a reader can compare."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import PurePosixPath

from reducer.tree import SourceTree

PYTHON = frozenset({".py", ".pyi"})
CXX = frozenset({".c", ".cc", ".cpp", ".cxx", ".cu", ".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".ipp", ".tpp"})

_LAYOUT = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)

_SKIPPED = r"//(?:[^\n\\]|\\.)*|/\*.*?(?:\*/|\Z)|\s+|\\\n"
_TOKENS = (
    r'(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z)'
    r'|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"?'
    r"|(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*'?"
    r"|\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*"
    r"|[^\W\d]\w*"
    r"|<<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#"
    r"|."
)
_LEXER = re.compile(rf"(?P<skip>{_SKIPPED})|(?P<token>{_TOKENS})", re.DOTALL)


def measure(tree: SourceTree) -> dict[str, int]:
    """``files``, ``lines`` (not blank) and ``tokens`` of the Python and C/C++/CUDA files; other files do not count.

    Tokens are what the language sees: no comments, no line ends, no indentation. A file that does not parse counts
    as far as it can be read.
    """
    files = lines = tokens = 0
    for path in tree:
        suffix = PurePosixPath(path).suffix.lower()
        if suffix not in PYTHON and suffix not in CXX:
            continue
        text = tree.text(path)
        files += 1
        lines += sum(1 for line in text.splitlines() if line.strip())
        tokens += python_tokens(text) if suffix in PYTHON else cxx_tokens(text)
    return {"files": files, "lines": lines, "tokens": tokens}


def python_tokens(text: str) -> int:
    """The number of tokens of Python source up to its first fault, the rest counted by words and signs."""
    count = 0
    row = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            count += token.type not in _LAYOUT
            row = token.end[0]
    except (tokenize.TokenError, SyntaxError, ValueError):  # ValueError: bytes that are no text
        rest = "\n".join(text.splitlines()[row:])
        count += len(re.findall(r"\w+|[^\w\s]", rest))
    return count


def cxx_tokens(text: str) -> int:
    """The number of preprocessing tokens of C, C++ or CUDA source, whether or not it is valid."""
    return sum(1 for match in _LEXER.finditer(text) if match["token"] is not None)
