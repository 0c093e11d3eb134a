"""A stream whose reader may be slow, stall or go away, and never holds up the launcher for long.

A pager that waits for its user, or a terminal stopped with Ctrl-S, would otherwise stop supervision, and behind full
pipes the whole job. What does not fit in time is left out, and the reader is told so; the log files have all that the
processes write. An outlet has what print and tqdm need of a file.
"""

import os
import select
import typing

PATIENCE_SECONDS = 1.0
# A pipe that poll calls writable takes so much without blocking.
WRITTEN_AT_ONCE = select.PIPE_BUF
LEFT_OUT = b"\nrun: some lines were not shown, since nobody read them; the log files have them\n"


class Outlet:
    def __init__(self, stream: typing.TextIO, patience: float = PATIENCE_SECONDS) -> None:
        self.encoding = stream.encoding
        self._file = stream.fileno()
        self._patience_ms = round(1000 * patience)
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLOUT)
        self._stalled = False
        self._gone = False

    def write(self, text: str) -> int:
        data = text.encode(self.encoding, "backslashreplace")
        if self._stalled and self._writable(0):
            self._stalled = False
            data = LEFT_OUT + data
        while data and not self._stalled and not self._gone:
            data = data[self._write_some(data):]
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        return self._file

    def isatty(self) -> bool:
        return os.isatty(self._file)

    def _writable(self, milliseconds: int) -> bool:
        return bool(self._poll.poll(milliseconds))

    def _write_some(self, data: bytes) -> int:
        if not self._writable(self._patience_ms):
            self._stalled = True
            return 0
        try:
            return os.write(self._file, data[:WRITTEN_AT_ONCE])
        except BlockingIOError:  # Somebody who shares the terminal has made it non-blocking.
            self._stalled = True
        except OSError:
            self._gone = True
        return 0
