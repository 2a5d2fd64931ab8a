"""Short texts by key, on disk, shared by all runs of a user; the oldest go when there are many."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

_BUSY = 10.0  # seconds that one run waits for another one's write
_SCHEMA = """
CREATE TABLE IF NOT EXISTS texts (
    section TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, used REAL NOT NULL, PRIMARY KEY (section, key)
) WITHOUT ROWID;
"""


class TextStore:
    """The texts of one ``section`` in the database ``path``; ``kept`` bounds the texts of all sections together.

    A store that cannot be opened, read or written (a full disk, a file that is no database) is empty and keeps
    nothing: it only ever saves work. Safe to share between threads and processes. Use as a context manager.
    """

    def __init__(self, path: Path, section: str, kept: int) -> None:
        self._section = section
        self._kept = kept
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA synchronous=OFF")  # a text that a power cut takes is asked for again
            self._connection.executescript(_SCHEMA)
            self._prune()
        except (OSError, sqlite3.Error):
            self.close()

    def close(self) -> None:
        """Close the database; from here on the store is empty."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> TextStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, key: str) -> str | None:
        """The text kept under ``key``."""
        rows = self._run("SELECT text FROM texts WHERE section = ? AND key = ?", (self._section, key))
        if not rows:
            return None
        self._run("UPDATE texts SET used = ? WHERE section = ? AND key = ?", (time.time(), self._section, key))
        text: str = rows[0][0]
        return text

    def put(self, key: str, text: str) -> None:
        """Keep ``text`` under ``key``."""
        self._run("INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?)", (self._section, key, text, time.time()))

    def clear(self) -> None:
        """Forget the section."""
        self._run("DELETE FROM texts WHERE section = ?", (self._section,))

    def _prune(self) -> None:
        assert self._connection is not None
        (count,) = self._connection.execute("SELECT count(*) FROM texts").fetchone()
        if count > self._kept:
            # A tenth more than needed: not every run shall have to do this.
            oldest = "SELECT section, key FROM texts ORDER BY used LIMIT ?"
            gone = self._connection.execute(oldest, (count - self._kept + self._kept // 10,)).fetchall()
            self._connection.executemany("DELETE FROM texts WHERE section = ? AND key = ?", gone)

    def _run(self, statement: str, values: tuple[object, ...]) -> list[tuple[str, ...]]:
        with self._lock:
            if self._connection is None:
                return []
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error:
                self._connection.close()
                self._connection = None
                return []
