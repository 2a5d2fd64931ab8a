"""What the passes ask of C++ files and functions: types as plain text, results, roles, byte ranges."""

from __future__ import annotations

from collections.abc import Iterator

from reducer.syntax.cxx import is_cxx
from reducer.syntax.cxx_outline import Function, Outline, outline
from reducer.syntax.cxx_statements import Block, Statement
from reducer.syntax.cxx_text import whole_lines
from reducer.syntax.cxx_tokens import TokenFile
from reducer.tree import SourceTree

_SPECIFIERS = {"static", "inline", "constexpr", "virtual", "extern", "explicit", "const", "friend", "typename"}
_NUMBERS = {
    "int", "long", "short", "char", "unsigned", "signed", "size_t", "int8_t", "int16_t", "int32_t", "int64_t",
    "uint8_t", "uint16_t", "uint32_t", "uint64_t", "float", "double", "std::size_t",
}  # fmt: skip


def cxx_files(tree: SourceTree) -> Iterator[tuple[str, Outline]]:
    """Path and outline of every C++ file of the tree."""
    for path in tree:
        if is_cxx(path):
            yield path, outline(tree[path])


def plain_type(text: str) -> str:
    """A type without qualifiers, specifiers, references and spaces; ``torch::Tensor`` counts as ``at::Tensor``."""
    file = TokenFile(text.encode("utf-8", "surrogateescape"))
    kept = (t.text for t in file.tokens if t.kind != "string")
    words = [text for text in kept if text not in _SPECIFIERS and text not in ("&", "&&")]
    joined = "".join(f" {w}" if i and words[i - 1][-1].isalnum() and w[0].isalnum() else w for i, w in enumerate(words))
    return "at::Tensor" if joined in ("torch::Tensor", "Tensor", "::at::Tensor") else joined


def default_value(type_name: str) -> str:
    """An expression of the (plain) type that needs nothing."""
    if type_name == "bool":
        return "false"
    return "0" if set(type_name.split()) <= _NUMBERS else "{}"


def return_type(outline: Outline, function: Function) -> str | None:
    """The plain return type; None when it has no name (constructors, macro heads, deduced types, references)."""
    if function.returns is None:
        return None
    written = outline.file.source(*function.returns)
    plain = plain_type(written)
    if not plain or plain in ("auto", "operator") or "operator" in written or written.rstrip().endswith("&"):
        return None
    return plain


def returns_of(outline: Outline, block: Block) -> list[Statement]:
    """The ``return`` statements that leave this block's function (not those of lambdas or local classes in it)."""
    found: list[Statement] = []
    pending = list(reversed(block.statements))
    while pending:
        statement = pending.pop()
        if statement.kind == "return":
            found.append(statement)
        pending += reversed(statement.bodies)
        if statement.block is not None:
            pending += reversed(statement.block.statements)
    return found


def span(file: TokenFile, first: int, last: int) -> tuple[int, int]:
    """Bytes of a token range, of its whole lines when it fills them."""
    return whole_lines(file.content, *file.extent(first, last))


def is_inherited(view: Outline, function: Function) -> bool:
    """True for a member of a class with bases: its name and signature may be what the base asks for."""
    scope = function.scopes[-1] if function.scopes else None
    if scope is None or scope.kind != "class":
        return False
    return ":" in {view.file.text(i) for i in range(scope.first, scope.open)}


def is_registration(view: Outline, function: Function) -> str:
    """``ops`` for a ``TORCH_LIBRARY…``/``PYBIND11_MODULE`` block, ``module`` for a ``PyInit_…`` function, else ""."""
    name = view.file.text(function.name)
    if name.startswith(("TORCH_LIBRARY", "PYBIND11_")):
        return "ops"
    return "module" if name.startswith("PyInit_") else ""
