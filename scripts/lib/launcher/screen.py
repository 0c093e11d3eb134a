"""What a person sees: prefixed lines of the processes, phases of the launcher, and how far things are.

On a terminal a bar (tqdm's) stands below the lines and prefixes have colours; elsewhere progress is a plain line now
and then.
"""

import collections.abc
import contextlib
import json
import os
import sys
import time
import typing

from launcher.outlet import Outlet
from launcher.plan import Spec

PLAIN_SECONDS = 10.0  # between two lines of progress where there is no bar
COLOURS = {"server": (36, 34, 96, 94), "worker": (32, 33, 92, 93)}
RED = 31
BAR = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"


def _find_tqdm() -> typing.Any | None:
    """The one that scripts/setup installed beside LibTorch, or the system's."""
    import setup

    sys.path += map(str, setup.cache_folder().glob("torch-*/lib/python3*/site-packages"))
    try:
        import tqdm
    except ImportError:
        return None
    tqdm.tqdm.monitor_interval = 0  # No thread beside ours.
    return tqdm.tqdm


class Screen:
    def __init__(
        self,
        stream: typing.TextIO | Outlet | None = None,
        clock: collections.abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or Outlet(sys.stdout)
        self._clock = clock
        self._hidden: set[str] = set()
        self._bar: typing.Any | None = None
        self._next_plain = clock() + PLAIN_SECONDS
        terminal = self._stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._tqdm = _find_tqdm() if terminal else None
        self._coloured = terminal and "NO_COLOR" not in os.environ

    def say(self, text: str) -> None:
        """A line of the launcher's own."""
        self._write("\n".join(f"run: {line}" for line in text.splitlines()))

    def fault(self, text: str) -> None:
        """A line about what went wrong, to standard error."""
        self.close_bar()
        for line in text.splitlines():
            print(f"run: {line}", file=Outlet(sys.stderr))

    def page(self, text: str) -> None:
        """As it is: a table, a page of the programs."""
        self._write(text.rstrip("\n"))

    def hide(self, line: str) -> None:
        """A line of the processes that is not shown."""
        self._hidden.add(line)

    def output(self, spec: Spec, lines: collections.abc.Iterable[str]) -> None:
        """Lines of a process."""
        prefix = self._colour(f"{spec.name} |", COLOURS[spec.role][spec.rank % len(COLOURS[spec.role])])
        text = "\n".join(f"{prefix} {self._emphasized(line)}" for line in lines if line not in self._hidden)
        if text:
            self._write(text)

    def progress_lines(self, lines: collections.abc.Iterable[str]) -> None:
        """JSON lines of a worker; the newest counts. A line that is none of these says nothing."""
        for line in reversed(list(lines)):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                record = json.loads(line)
                self.progress("training", int(record["clock"]), int(record["total"]), describe(record))
                return

    def progress(self, what: str, done: int, total: int, text: str = "") -> None:
        if self._tqdm:
            self._draw(what, done, total, text)
        elif self._clock() >= self._next_plain:
            self._next_plain = self._clock() + PLAIN_SECONDS
            self.say(f"{what}: {done} of {total}{', ' if text else ''}{text}")

    def close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _draw(self, what: str, done: int, total: int, text: str) -> None:
        if self._bar is None or not self._bar.desc.startswith(what):
            self.close_bar()
            self._bar = self._tqdm(desc=what, total=total, file=self._stream, bar_format=BAR, dynamic_ncols=True)
        self._bar.total, self._bar.n = total, done
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.refresh()

    def _write(self, text: str) -> None:
        if self._bar is not None:
            self._bar.clear()
        self._stream.write(f"{text}\n")
        if self._bar is not None:
            self._bar.refresh()

    def _emphasized(self, line: str) -> str:
        return self._colour(line, RED) if line.startswith("error: ") else line

    def _colour(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured else text


def describe(record: dict[str, typing.Any]) -> str:
    """A worker's progress in words, less what it does not know."""
    parts = []
    if record.get("epoch") is not None:
        parts.append(f"epoch {record['epoch'] + 1}")
    if record.get("loss") is not None:
        parts.append(f"loss {record['loss']:.4f}")
    if record.get("accuracy") is not None:
        parts.append(f"accuracy {100 * record['accuracy']:.2f} %")
    if record.get("samples_per_second") is not None:
        parts.append(f"{record['samples_per_second']:.0f} samples/s")
    return ", ".join(parts)
