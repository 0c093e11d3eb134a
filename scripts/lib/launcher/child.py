"""One process of the job: started so that it cannot outlive us, signalled and reaped only while it is ours.

A child has a process group of its own, so that Ctrl-C on the terminal reaches the launcher alone, which passes it on
once. The kernel kills it when the launcher's thread ends, even by SIGKILL. It is named by a pidfd, which becomes
readable at its end and can never come to mean another process.
"""

import contextlib
import ctypes
import io
import os
import pathlib
import signal
import subprocess

from launcher import lines
from launcher.errors import LaunchError
from launcher.plan import Spec

PR_SET_PDEATHSIG = 1
READ_AT_ONCE = 1 << 16
READ_AT_END = 16 << 20  # A grandchild that keeps the pipe open and writes for ever is not waited for.

_LIBC = ctypes.CDLL(None)


def die_with(parent: int) -> None:
    """Runs in the new process, before its program: has it killed when the parent's thread ends, or did already."""
    _LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def read_some(pipe: int) -> bytes | None:
    """What a non-blocking pipe holds; b"" at its end, None where nothing has come."""
    try:
        return os.read(pipe, READ_AT_ONCE)
    except BlockingIOError:
        return None


class Child:
    """A started process. Its output goes to the log file as it is; `output` and `progress` give what is to be shown."""

    def __init__(self, spec: Spec, log: pathlib.Path) -> None:
        self.spec = spec
        self._lines = lines.LineSplitter()
        self._progress_lines = lines.LineSplitter()
        self._error = ""
        self._last_words = ""
        with contextlib.ExitStack() as undo:
            self._log: io.FileIO | None = undo.enter_context(open(log, "wb", buffering=0))
            self._process = self._start(undo)
            undo.pop_all()
        assert self._process.stdout is not None
        self.pidfd = os.pidfd_open(self._process.pid)
        self.output_pipe = self._process.stdout.fileno()
        os.set_blocking(self.output_pipe, False)

    def _start(self, undo: contextlib.ExitStack) -> "subprocess.Popen[bytes]":
        command, theirs = list(self.spec.command), []
        self.progress_pipe = -1
        if self.spec.reports_progress:
            self.progress_pipe, write_end = os.pipe()
            os.set_blocking(self.progress_pipe, False)
            undo.callback(os.close, self.progress_pipe)
            command += ["--progress-fd", str(write_end)]
            theirs.append(write_end)
        parent = os.getpid()
        try:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
                process_group=0, pass_fds=theirs, preexec_fn=lambda: die_with(parent))
        except OSError as error:
            raise LaunchError(f"{self.spec.name}: {command[0]} cannot be started: {error.strerror}") from None
        finally:
            for write_end in theirs:
                os.close(write_end)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def error(self) -> str:
        """What it last said about an error; where it logged none, its last words outside of the log (a crash)."""
        return self._error or self._last_words

    def output(self) -> list[str] | None:
        """Lines to show that have come; None at the end of the stream."""
        data = read_some(self.output_pipe)
        return None if data == b"" else self._take(data or b"")

    def progress(self) -> list[str] | None:
        """The same for the pipe of --progress-fd."""
        data = read_some(self.progress_pipe)
        return None if data == b"" else self._progress_lines.feed(data or b"")

    def reap(self) -> tuple[int, list[str]]:
        """To be called once the pidfd is readable: the status as subprocess has it, and the last lines."""
        rest: list[str] = []
        for _ in range(READ_AT_END // READ_AT_ONCE):
            data = read_some(self.output_pipe)
            if not data:
                break
            rest += self._take(data)
        rest += map(self._shown, self._lines.finish())
        returncode = self._process.wait()
        self._close()
        return returncode, rest

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # It has ended and waits to be reaped.
            signal.pidfd_send_signal(self.pidfd, number)

    def kill(self, seconds: float) -> None:
        """For a way out that has no time for manners."""
        self.send(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self._close()

    def _take(self, data: bytes) -> list[str]:
        shown = [self._shown(text) for text in self._lines.feed(data)]
        try:
            if self._log is not None:
                self._log.write(data)
        except OSError as error:
            shown.append(f"warning: {self._log.name}: {error.strerror}; its log ends here")
            self._log.close()
            self._log = None
        return shown

    def _shown(self, text: str) -> str:
        line = lines.parse(text, self.spec.name)
        if line.is_error:
            self._error = line.text
        elif not line.severity and line.text.strip():
            self._last_words = line.text.strip()
        return str(line)

    def _close(self) -> None:
        self._process.stdout.close()
        os.close(self.pidfd)
        if self.progress_pipe >= 0:
            os.close(self.progress_pipe)
        if self._log is not None:
            self._log.close()
