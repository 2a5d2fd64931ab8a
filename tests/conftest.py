"""Which tests run: all but ``slow`` unless -m says otherwise, and ``real`` ones only where both frameworks are."""

from __future__ import annotations

import importlib.util
import signal

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what goes to its background with SIGINT ignored, and children inherit that: the tests that
    # interrupt a process would wait for one that never notices.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not config.option.markexpr:
        config.option.markexpr = "not slow"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [name for name in ("paddle", "torch") if importlib.util.find_spec(name) is None]
    if not missing:
        return
    skip = pytest.mark.skip(reason=f"{' and '.join(missing)} not installed here: ./dev setup")
    for item in items:
        if "real" in item.keywords or "slow" in item.keywords:
            item.add_marker(skip)
