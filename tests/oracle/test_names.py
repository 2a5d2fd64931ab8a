"""Demangling, bare names and torch's names, on examples taken from real messages."""

from __future__ import annotations

import pytest

from reducer.oracle.names import bare, demangle, same_symbol, to_torch
from reducer.oracle.normalise import template
from reducer.oracle.python_errors import about


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_ZNK2at6Tensor16mutable_data_ptrIfEEPT_v", "at::Tensor::mutable_data_ptr"),
        ("_ZN3c10lsERSoRKNS_13TensorOptionsE", "c10::operator<<"),
        ("N3c108ArrayRefIlEE", "c10::ArrayRef"),
    ],
)
def test_demangled_bare_names(mangled: str, name: str) -> None:
    assert bare(demangle(mangled)) == name


def test_what_is_not_mangled_stays() -> None:
    assert demangle("main!") == "main!"
    assert demangle("") == ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("torch::Library& torch::Library::def(const std::string&, Func&&) & [with Func = int]", "torch::Library::def"),
        ("A<int>::A(int)", "A::A"),
        ("int A::operator()(int) const", "A::operator()"),
        ("A::operator bool() const", "A::operator bool"),
        ("c10::DeviceType {aka 'phi::AllocationType'}", "c10::DeviceType"),
        ("long unsigned int", "unsigned long"),
        ("std::__cxx11::basic_string<char>", "std::basic_string"),
    ],
)
def test_bare(text: str, name: str) -> None:
    assert bare(text) == name


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("at::Tensor::item", "paddle::Tensor::item", True),
        ("to", "at::Tensor::to", True),
        ("c10::DeviceType::Meta", "phi::AllocationType::Meta", True),
        ("std::string::nope", "std::basic_string::nope", True),
        ("at::sum", "at::Tensor::sum", False),
        ("at::sum", "at::max", False),
        ("std::span", "c10::span", False),
        ("torch.nn.X", "torch.X", False),
        ("torch/script.h", "torch/torch.h", False),
        ("Tensor::item", "Scalar::item", False),
    ],
)
def test_same_symbol(first: str, second: str, same: bool) -> None:
    assert same_symbol(first, second) is same


def test_torch_names() -> None:
    assert to_torch("paddle.nn.MaxPool2d") == "torch.nn.MaxPool2d"
    assert to_torch("paddle.compat.nn.Unfold") == "torch.nn.Unfold"
    assert to_torch("numpy.ones") == "numpy.ones"


_MISSING = "module 'paddle.nn' has no attribute 'X'"


@pytest.mark.parametrize(
    ("message", "symbol", "expected"),
    [
        ("module 'paddle.nn' has no attribute 'X'. Did you mean: 'Y'?", "torch.nn.X", _MISSING),
        ("module 'mylib_C' has no attribute 'f'", "f", "module '<module>' has no attribute 'f'"),
        ("'Tensor' object has no attribute 'copy'", "torch.Tensor.copy", "'Tensor' object has no attribute 'copy'"),
        ("'Net' object has no attribute 'copy'", "copy", "'<class>' object has no attribute 'copy'"),
        ("cannot import name 'n' from 'torch._C' (/x/y.py)", "torch._C.n", "cannot import name 'n' from 'torch._C'"),
        (
            "paddle.max() received unexpected keyword argument 'dim'.\nDid you mean to use paddle.compat.max()?",
            "torch.max(dim=)",
            "torch.max(dim=): unexpected keyword",
        ),
        (
            "(PreconditionNotMet) Error in operator 'a::b': Function call failed: a::b is bad (at /paddle/x.h:70)",
            "",
            "(PreconditionNotMet) Error in operator '<op>': Function call failed: <op> is bad",
        ),
    ],
)
def test_python_messages(message: str, symbol: str, expected: str) -> None:
    assert about(message) == (symbol, expected)


def test_operators_and_counters_are_not_part_of_a_template() -> None:
    first = template("Error in operator 'pool::cells': generated_tensor_3 has shape [2, 3] at 0x7f (at /paddle/a.h:1)")
    second = template("Error in operator 'x::y': generated_tensor_41 has shape [7] at 0x55aa (at /paddle/a.h:99)")
    assert first == second
