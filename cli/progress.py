"""What a long build is at, for a person who waits.

In: what is made next, how many are done, how many there are. Out: after two seconds, one line of a terminal that
changes; where stderr is no terminal, log lines. Example:

    with Progress(quiet=False) as progress:
        progress("slope(f64, f64) for x86-64-v3", 2, 18)    # [3/18] slope(f64, f64) for x86-64-v3
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import Any, TextIO

log = logging.getLogger("metaphrase.compile")
PATIENCE = 2.0  # seconds in which nothing is shown


class Progress:
    """Silent for the first seconds, and always if `quiet`."""

    def __init__(self, quiet: bool, stream: TextIO | None = None, patience: float = PATIENCE):
        self.quiet, self.stream, self.patience = quiet, stream or sys.stderr, patience
        self.is_terminal = self.stream.isatty()
        self.lock, self.text, self.is_late = threading.Lock(), "", False
        self.timer = threading.Timer(patience, self._late)
        self.timer.daemon = True
        self.handler = logging.StreamHandler(self.stream)
        self.handler.setFormatter(logging.Formatter("metaphrase: %(message)s"))

    def __enter__(self) -> Progress:
        if not self.quiet:
            if not self.is_terminal:
                log.addHandler(self.handler)
                log.setLevel(logging.INFO)
            self.timer.start()
        return self

    def __exit__(self, *problem: Any) -> None:
        self.timer.cancel()
        if self.timer.ident is not None:
            self.timer.join()
        with self.lock:
            if self.is_late and self.is_terminal:
                self._write("")
            self.is_late = False
        log.removeHandler(self.handler)

    def __call__(self, what: str, done: int, count: int) -> None:
        with self.lock:
            self.text = f"[{done + 1}/{count}] {what}"
            self._show()

    def _late(self) -> None:
        with self.lock:
            self.is_late = True
            self._show()

    def _show(self) -> None:
        if not self.is_late or not self.text:
            return
        if self.is_terminal:
            self._write(self.text)
        else:
            log.info("%s", self.text)

    def _write(self, text: str) -> None:
        """The text in the place of what the line held before."""
        try:
            width = os.get_terminal_size(self.stream.fileno()).columns
        except (OSError, ValueError):
            width = 80
        self.stream.write(f"\r\x1b[K{text[: width - 1]}")
        self.stream.flush()


__all__ = ["Progress"]
