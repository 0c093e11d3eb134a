"""One process of a job, its log as it comes, and how it ended.

Waits have deadlines and wake up on events (a line, the end); nobody sleeps. A process that a test
leaves behind is killed by its own pid, and dies with the test should the test itself be killed.
"""

import ctypes
import os
import re
import signal
import subprocess
import threading
import time

# How long a test waits for what should come at once; generous, since the machine may be busy.
PATIENCE = 60

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_LOG_LINE = re.compile(r"^([IWEF])\d{8} \S+ +\d+ \S+\] (.*)$")


def _die_with_parent():
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """`name` is for people; `command` is run in `folder`, its output kept in `lines`."""

    def __init__(self, name, command, folder, environment=None, prepare=None):
        self.name = name
        self.lines = []
        self.started = time.monotonic()
        self.ended = None  # when its output ended
        self._seen = 0
        self._changed = threading.Condition()

        def before_exec():
            _die_with_parent()
            if prepare:
                prepare()

        self._popen = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", preexec_fn=before_exec)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self._popen.pid

    def _read(self):
        for line in self._popen.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self.ended = time.monotonic()
            self._changed.notify_all()

    def running(self):
        return self._popen.poll() is None

    def wait_line(self, pattern, timeout=PATIENCE):
        """The match of the first line, from the last one found on, in which `pattern` is."""
        deadline = time.monotonic() + timeout
        expression = re.compile(pattern)
        with self._changed:
            while True:
                while self._seen < len(self.lines):
                    match = expression.search(self.lines[self._seen])
                    self._seen += 1
                    if match:
                        return match
                left = deadline - time.monotonic()
                if self.ended is not None or left <= 0:
                    how = "ended" if self.ended is not None else f"{timeout} s passed"
                    raise AssertionError(f"{self.name}: {how} without '{pattern}'\n{self.tail()}")
                self._changed.wait(left)

    def wait(self, timeout=PATIENCE):
        """The exit status; minus the signal's number where one ended it."""
        try:
            status = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {timeout} s\n{self.tail()}") from None
        self._reader.join(timeout)
        return status

    def send(self, number):
        self._popen.send_signal(number)

    def end(self):
        """Kills it where it still runs."""
        if self.running():
            self._popen.kill()
            self._popen.wait()
        self._reader.join(5)
        self._popen.stdout.close()

    def texts(self, level):
        """The messages of that level (I, W, E), without what the log puts in front."""
        found = [_LOG_LINE.match(line) for line in self.lines]
        return [match.group(2) for match in found if match and match.group(1) == level]

    def last_error(self):
        errors = self.texts("E")
        return errors[-1] if errors else ""

    def tail(self, count=15):
        return "\n".join(f"    {self.name}| {line}" for line in self.lines[-count:])

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def resident_bytes(self):
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def listens_on(self):
        """Ports on which the process listens now."""
        inodes = set()
        for entry in os.listdir(f"/proc/{self.pid}/fd"):
            try:
                link = os.readlink(f"/proc/{self.pid}/fd/{entry}")
            except OSError:
                continue
            if link.startswith("socket:["):
                inodes.add(link[8:-1])
        ports = set()
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{self.pid}/net/{table}", encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
            ports |= {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes}
        return sorted(ports)
