"""One vocabulary for what g++, clang and nvcc say about the same error.

Each compiler has its own sentence for the same fault, and some split one fault in two (g++ says "is not a member of"
for namespaces and classes alike, clang tells them apart), so the types here are as coarse as the coarsest compiler:

``missing-header``, ``missing-member`` (a qualified name: namespace, class, enumerator, nested type), ``missing-name``
(an unqualified one, or a macro), ``no-matching-call`` (no overload, wrong arity, constructors),
``no-matching-conversion``, ``no-matching-operator``, ``incomplete-type``, ``not-a-template``, ``not-a-scope``,
``redefinition``, ``ambiguous``, ``static-assert``, ``private``, ``deleted``, ``template-arguments``, ``abstract``,
``override``, ``discards-const``, ``read-only``, ``preprocessor-error``, ``syntax`` and ``other``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from reducer.oracle.names import bare, without_aka
from reducer.oracle.normalise import straight, strip_ansi, template, without_hints

_Rule = tuple[re.Pattern[str], str, Callable[[re.Match[str]], str]]

CASCADE = frozenset({"syntax", "other", "template-arguments"})
"""Types that are usually the wake of an earlier, nameable error."""

NAMELESS = frozenset({"missing-name", "no-matching-call", "no-matching-operator", "discards-const", "not-a-scope"})
"""Types for which one compiler names a symbol where another names none."""


def _named(match: re.Match[str]) -> str:
    return bare(match.group(1))


def _member(match: re.Match[str]) -> str:
    """The member of a scope, from the groups ``m`` and ``s``."""
    scope, member = bare(match.group("s")), bare(match.group("m"))
    return f"{scope}::{member}" if scope else member


def _call(match: re.Match[str]) -> str:
    """The callee; a constructor (``A::A``) by its class alone, as clang names it."""
    parts = bare(match.group(1)).split("::")
    if len(parts) > 1 and parts[-1] == parts[-2]:
        parts.pop()
    return "::".join(parts)


def _operand(match: re.Match[str]) -> str:
    return f"operator({bare(match.group(1)).rpartition('::')[2]})"


def _variable(match: re.Match[str]) -> str:
    """The type in a declaration such as ``X<int> x``."""
    return bare(re.sub(r"\s*\b[A-Za-z_]\w*$", "", match.group(1)) or match.group(1))


def _header(match: re.Match[str]) -> str:
    return match.group(1)


def _text(match: re.Match[str]) -> str:
    return ""


# One quoted thing; nvcc's double quotes were turned into single ones before.
_Q = r"'((?:[^']|'(?=\w+'\)))*)'"


def _rule(pattern: str, type_: str, symbol: Callable[[re.Match[str]], str] = _named) -> _Rule:
    return re.compile(pattern.replace("%", _Q)), type_, symbol


def _scoped(pattern: str) -> _Rule:
    quoted = {"M": r"'(?P<m>[^']*)'", "S": r"'(?P<s>[^']*)'"}
    return re.compile(re.sub(r"\b[MS]\b", lambda m: quoted[m.group()], pattern)), "missing-member", _member


_RULES: tuple[_Rule, ...] = (
    # the wake of something else, where a later rule would also match
    _rule(r"^(?:variable has )?incomplete type 'void'", "syntax", _text),
    # headers
    _rule(r"^'?([^':]+?)'?: No such file or directory", "missing-header", _header),
    _rule(r"^% file not found", "missing-header", _header),
    _rule(r"cannot open source file %", "missing-header", _header),
    _rule(r"^#error:?\s*(.*)", "preprocessor-error", _text),
    _rule(r"^#error directive: (.*)", "preprocessor-error", _text),
    # qualified names
    _scoped(r"^S has no member named M"),
    _scoped(r"^no (?:member|type|template|enumerator) named M in (?:namespace |the global namespace)?S"),
    _scoped(r"^M is not a member of S"),
    _scoped(r"^M in (?:namespace|class|struct|union|enum)? ?S does not name a (?:template )?type"),
    _scoped(r"^M has not been declared in S"),
    _scoped(r"^(?:namespace|class|struct|union|enum|type|template class|class template) S has no (?:actual )?member M"),
    _scoped(r"^S has no (?:actual )?member M"),
    _rule(r"^'([^']+::[^']+)' has not been declared", "missing-member"),
    _rule(r"^'([^']+::[^']+)' (?:was not declared|does not name a type)", "missing-member"),
    # unqualified names
    _rule(r"^% (?:was not|has not been) declared", "missing-name"),
    _rule(r"^% does not name a (?:template )?type", "missing-name"),
    _rule(r"^use of undeclared (?:identifier|template) %", "missing-name"),
    _rule(r"^unknown type name %", "missing-name"),
    _rule(r"^no template named %", "missing-name"),
    _rule(r"^unknown template name %", "syntax", _text),
    _rule(r"^identifier % is undefined", "missing-name"),
    _rule(r"^there are no arguments to % that depend on a template parameter", "missing-name"),
    _rule(r"^call to function % that is neither visible", "missing-name"),
    _rule(r"^% undeclared", "missing-name"),
    _rule(r"^% is not a (?:namespace-name|type)", "missing-name"),
    _rule(r"^explicit type is missing \(% assumed\)", "missing-name", _text),
    _rule(r"^this declaration has no storage class or type specifier", "missing-name", _text),
    _rule(r"^expected constructor, destructor, or type conversion before", "missing-name", _text),
    _rule(r"^(?:a|C\+\+ requires a) type specifier (?:is required )?for all declarations", "missing-name", _text),
    # calls
    _rule(r"^no matching (?:member )?function for call to %", "no-matching-call", _call),
    _rule(r"^no matching constructor for initialization of %", "no-matching-call", _call),
    _rule(r"^no matching conversion for .* from .* to %$", "no-matching-call", _call),
    _rule(
        r"^no instance of (?:overloaded function|function template|constructor|member function) %",
        "no-matching-call",
        _call,
    ),
    _rule(
        r"^too (?:few|many) arguments to (?:function|constructor|method|member function) %", "no-matching-call", _call
    ),
    _rule(r"^too (?:few|many) arguments (?:to|in) function call", "no-matching-call", _text),
    _rule(r"^no default constructor exists for class %", "no-matching-call", _call),
    # operators
    _rule(r"^no match for call to '\((.*?)\) \(", "no-matching-operator", _operand),
    _rule(r"^no match for '[^']*' \(operand types? (?:is|are) %", "no-matching-operator", _operand),
    _rule(r"^invalid operands (?:of types|to binary expression) \(?%", "no-matching-operator", _operand),
    _rule(r"^type % does not provide a (?:subscript|call) operator", "no-matching-operator", _operand),
    _rule(r"^no viable overloaded operator\S+ for type %", "no-matching-operator", _operand),
    _rule(r"^invalid argument type % to unary", "no-matching-operator", _operand),
    _rule(r"^indirection requires pointer operand \(% invalid", "no-matching-operator", _operand),
    _rule(r"^call of an object of a class type without appropriate operator\(\)", "no-matching-operator", _text),
    _rule(r"^(?:no viable overloaded|no operator) %", "no-matching-operator", _text),
    # conversions: the symbol is the target type
    _rule(r"^no viable (?:conversion|constructor).* to (?:function return type )?%$", "no-matching-conversion"),
    _rule(r"^(?:cannot|could not) convert .* to (?:non-scalar type )?%", "no-matching-conversion"),
    _rule(r"^(?:invalid )?conversion from '[^']*' to (?:non-scalar type )?%", "no-matching-conversion"),
    _rule(r"^cannot initialize .*? of type %", "no-matching-conversion"),
    _rule(r"^(?:assigning to|incompatible .* to) %", "no-matching-conversion"),
    _rule(r"^no suitable .* (?:from|convert from) '.*' to %", "no-matching-conversion"),
    _rule(
        r"^a value of type '.*' cannot be (?:used to initialize|assigned to) an entity of type %",
        "no-matching-conversion",
    ),
    _rule(r"^return value type '.*' does not match the function type %", "no-matching-conversion"),
    _rule(r"^argument of type '.*' is incompatible with parameter of type %", "no-matching-conversion"),
    _rule(r"^cannot bind non-const lvalue reference of type %", "no-matching-conversion"),
    _rule(r"^initial value of reference to non-const must be an lvalue", "no-matching-conversion", _text),
    _rule(r"^non-const lvalue reference to type % cannot bind", "no-matching-conversion"),
    # types
    _rule(r"^invalid use of incomplete type %", "incomplete-type"),
    _rule(r"^(?:aggregate|variable) % has (?:initializer but )?incomplete type", "incomplete-type", _variable),
    _rule(r"^field '[^']*' has incomplete type %", "incomplete-type"),
    _rule(r"^'[^']*' has incomplete type$", "incomplete-type", _text),
    _rule(r"^.* has incomplete (?:result |return )?type %", "incomplete-type"),
    _rule(r"incomplete type % (?:used|named) in nested name", "incomplete-type"),
    _rule(r"(?:into|to|to an|from|on) incomplete type %", "incomplete-type"),
    _rule(r"^implicit instantiation of undefined template %", "incomplete-type"),
    _rule(r"^incomplete type (?:% )?is not allowed", "incomplete-type"),
    _rule(r"^% is not a template", "not-a-template"),
    _rule(r"^(?:class|struct|type) % may not have a template argument list", "not-a-template"),
    _rule(r"^(\w+) is not a template", "missing-name"),
    _rule(r"^name must be a namespace name", "missing-name", _text),
    _rule(r"^% following the 'template' keyword does not refer to a template", "not-a-template"),
    _rule(r"^% is not a class(?:,| or) namespace", "not-a-scope"),
    _rule(r"^name followed by '::' must be a class or namespace name", "missing-name", _text),
    _rule(r"^(?:wrong number of|too (?:few|many)) template arguments", "template-arguments", _text),
    _rule(r"^too (?:few|many) arguments for (?:class|alias|function) template", "template-arguments", _text),
    _rule(r"^template argument \d+ is invalid", "template-arguments", _text),
    _rule(r"^cannot declare .* to be of abstract type %", "abstract"),
    _rule(r"^(?:variable|field|parameter|return) type % is an abstract class", "abstract"),
    _rule(r"^object of abstract class type %", "abstract"),
    _rule(r"^(?:invalid|allocating|cannot allocate) .*abstract (?:class )?type %", "abstract"),
    _rule(r"marked 'override'|declared with 'override' does not override", "override", _text),
    _rule(r"^the object has type qualifiers that are not compatible with the member function %", "discards-const"),
    _rule(r"^expression must be a modifiable lvalue", "read-only", _text),
    _rule(r"^passing '[^']*' as 'this' argument discards qualifiers", "discards-const", _text),
    _rule(r"^'this' argument to member function % has type", "discards-const"),
    _rule(r"^(?:assignment of|increment of|decrement of) read-only", "read-only", _text),
    _rule(r"^cannot assign to ", "read-only", _text),
    # declarations
    _rule(r"^redefinition of %", "redefinition"),
    _rule(r"^(?:function|variable|class|struct) % has already been defined", "redefinition"),
    _rule(r"^call of overloaded % is ambiguous", "ambiguous", _call),
    _rule(
        r"^(?:call to|reference to|conversion from) (?:constructor of |member function )?% .*ambiguous",
        "ambiguous",
        _call,
    ),
    _rule(r"^% is ambiguous", "ambiguous", _call),
    _rule(r"^more than one instance of (?:overloaded function|constructor) %", "ambiguous", _call),
    _rule(r"^static(?:_assert| assertion) failed", "static-assert", _text),
    _rule(r"^% is (?:private|protected) within this context", "private"),
    _rule(r"^% is a (?:private|protected) member of", "private"),
    _rule(r"^calling a (?:private|protected) (?:constructor|destructor) of class %", "private", _call),
    _rule(r"^(?:function|member|constructor|type) % .*is inaccessible", "private"),
    _rule(r"^use of deleted function %", "deleted", _call),
    _rule(r"^(?:call to|attempt to use) (?:an? )?(?:implicitly-)?deleted (?:[\w ]+ )?(?:of )?%", "deleted", _call),
    _rule(r"^attempt to use a deleted function", "deleted", _text),
    _rule(r"^function % .*cannot be referenced -- it is a deleted function", "deleted", _call),
    _rule(r"^object of type % cannot be assigned because its .* operator is (?:implicitly )?deleted", "deleted"),
    # the wake of something else
    _rule(r"^variable or field '[^']*' declared void", "syntax", _text),
    _rule(r"^(?:expected|extraneous|unexpected|stray|missing|unterminated) ", "syntax", _text),
    _rule(r"^% cannot be used as a function", "syntax", _text),
)

# clang and g++ say a fault of a call's arguments at different places: the note that names the callee decides.
_CALLEE = re.compile(r"^(?:initializing argument \d+ of |in call to )'((?:[^'])*)'|^'([^']*)' declared here")
_ARGUMENT_TYPES = frozenset({"no-matching-conversion", "discards-const", "no-matching-call"})
_POINTED_AT = re.compile(r"^'([\w:]+)' is what the compiler points at")
_ASSERTED = re.compile(r"^static(?:_assert| assertion) failed(?: due to requirement '.*?')?(?: with)?:?\s*(.*)$")
_SWITCH = re.compile(r"\s*\[-[WFf][\w=+-]*\]$")


def clean(message: str) -> str:
    """``message`` in one line with ASCII quotes and without suggestions, alias remarks and switches."""
    text = straight(strip_ansi(message)).strip().split("\n")[0].replace('"', "'")
    return _SWITCH.sub("", without_aka(without_hints(text))).strip()


def classify(message: str, notes: Sequence[str] = ()) -> tuple[str, str]:
    """The type (see the module's text) and the symbol of a compiler's error, "" when it names none.

    ``notes`` are the messages of the notes that belong to it; they name the callee where the error does not.
    """
    text = clean(message)
    for pattern, type_, symbol in _RULES:
        match = pattern.search(text)
        if match is not None:
            return _with_notes(type_, symbol(match), text, notes)
    return "other", ""


def _with_notes(type_: str, symbol: str, text: str, notes: Sequence[str]) -> tuple[str, str]:
    if type_ == "missing-name" and not symbol:
        for note in notes:
            found = _POINTED_AT.match(straight(note))
            if found:
                return ("missing-member" if "::" in found.group(1) else type_), found.group(1)
    elif type_ in _ARGUMENT_TYPES and (not symbol or "this' argument" not in text):
        for note in notes:
            callee = _CALLEE.match(straight(note).strip())
            if callee is None or (symbol and callee.group(2)):
                continue
            name = bare(callee.group(1) or callee.group(2))
            parts = name.split("::")
            name = "::".join(parts[:-1]) if len(parts) > 1 and parts[-1] == parts[-2] else name
            return ("discards-const" if type_ == "discards-const" else "no-matching-call"), name
    return type_, symbol


def message_template(message: str, notes: Sequence[str] = ()) -> str:
    """What must be equal in two messages of the same fault, whichever compiler spoke.

    Type and symbol say it all for errors of a known type; what remains is the text of a static assertion or
    ``#error``, and the whole message of the others.
    """
    type_, _ = classify(message, notes)
    text = clean(message)
    if type_ == "static-assert":
        asserted = _ASSERTED.match(text)
        return f"static-assert: {template(asserted.group(1).strip(chr(39))) if asserted else ''}"
    if type_ in ("other", "preprocessor-error"):
        return template(text)
    return type_
