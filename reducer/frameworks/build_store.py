"""Finished builds of one side, by content; and how to repeat them on candidates that differ in C++ text only."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from reducer.frameworks.build_command import is_build_input
from reducer.frameworks.replay import Replay, copy_new, replay_key, replay_of
from reducer.frameworks.side import site_of
from reducer.oracle.candidate import Candidate
from reducer.oracle.observation import CompilerCall
from reducer.world.workspace import QueryDirectory

KEPT_BUILDS = 24


class BuildStore:
    """Products of builds below ``directory``; the oldest go when there are many. Safe to share between threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._replays: dict[str, Replay] = {}
        self._lock = threading.Lock()  # the oldest may not go while it is copied

    def restore(self, candidate: Candidate, places: QueryDirectory) -> bool:
        """Put the products of an equal build in place, if there was one. Raises OSError."""
        store = self._store(candidate)
        with self._lock:
            if not store.is_dir():
                return False
            copy_new(store / "tree", places.tree)
            copy_new(store / "site", site_of(places))
            os.utime(store)
            return True

    def replay(self, candidate: Candidate) -> Replay | None:
        """How an earlier candidate was built whose build differs from this one's in the text of C++ files only."""
        return self._replays.get(replay_key(candidate))

    def forget(self, candidate: Candidate) -> None:
        """The repeated calls did not do: let the build system build such candidates again."""
        self._replays.pop(replay_key(candidate), None)

    def keep(self, candidate: Candidate, places: QueryDirectory, calls: Iterable[CompilerCall]) -> None:
        """Store what the build added to the tree and to its site directory. Raises OSError."""
        with self._lock:
            self._keep(candidate, places, calls)

    def _keep(self, candidate: Candidate, places: QueryDirectory, calls: Iterable[CompilerCall]) -> None:
        store = self._store(candidate)
        if store.is_dir():
            return
        part = store.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        (part / "tree").mkdir(parents=True)
        for path in places.tree.rglob("*"):
            name = path.relative_to(places.tree)
            if path.is_file() and str(name) not in candidate.tree and name.parts[0] != "build":
                target = part / "tree" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)
        if "build/" in str(candidate.recipe.build) and (places.tree / "build").is_dir():
            shutil.copytree(places.tree / "build", part / "tree" / "build", dirs_exist_ok=True)
        shutil.copytree(site_of(places), part / "site")
        os.replace(part, store)
        key = replay_key(candidate)
        if key not in self._replays:
            self._learn(key, candidate, places, calls, store)
        kept = sorted((p for p in self._directory.iterdir() if len(p.name) == 32), key=lambda p: p.stat().st_mtime)
        for old in kept[:-KEPT_BUILDS]:
            shutil.rmtree(old, ignore_errors=True)

    def _learn(
        self, key: str, candidate: Candidate, places: QueryDirectory, calls: Iterable[CompilerCall], store: Path
    ) -> None:
        """Keep the products for repeating the build too: the store's own copy may go."""
        products = self._directory / f"{key}.replay"
        shutil.rmtree(products, ignore_errors=True)
        shutil.copytree(store, products)
        replay = replay_of(places, candidate, calls, products)
        if replay is None:
            shutil.rmtree(products, ignore_errors=True)
        else:
            self._replays[key] = replay

    def _store(self, candidate: Candidate) -> Path:
        """Where the products of this build are kept: by the content of all that the build can read."""
        build = candidate.recipe.build or ""
        state = hashlib.sha256(build.encode())
        for path, content in candidate.tree.items():
            if is_build_input(path, candidate.tree, build):
                state.update(path.encode("utf-8", "surrogateescape") + b"\0%d\0" % len(content) + content)
        self._directory.mkdir(parents=True, exist_ok=True)
        return self._directory / state.hexdigest()[:32]


def extensions(places: QueryDirectory) -> Iterator[Path]:
    """What a build left that could be loaded or imported."""
    yield from site_of(places).rglob("*")
    for path in places.tree.rglob("*.so"):
        if "temp." not in str(path.relative_to(places.tree)):
            yield path
