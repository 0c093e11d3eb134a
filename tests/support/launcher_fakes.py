"""Small programs that stand in for parley-server and parley-worker, to show the launcher every way a process can end.

What each does is a list of steps, by process name, in the environment variable FAKE: {"worker 1": [["exit", 3]]}; a
process that is not named ends well at once. None lives longer than a minute, whatever the
launcher does.
"""

import contextlib
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(os.environ["SOURCE_DIR"])
LAUNCH = ROOT / "scripts" / "launch.py"
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

WAIT_SECONDS = 50.0  # The machine may be busy with other tests.

EVERYONE = ("server 0", "server 1", "worker 0", "worker 1")

PAGE = {
    "config": {
        "cluster": {"coordinator": "127.0.0.1:0", "bind": "127.0.0.1", "data_port": 0, "job": ""},
        "server": {"shards": 1}, "sync": {"mode": "bsp"}, "launch": {"grace_seconds": 5.0},
        "data": {"kind": "mnist", "dir": "data/mnist"},
    },
    "provenance": {"data.dir": "--data.dir"}, "inactive": {}, "warning": "", "servers": 2, "workers": 2,
}

PLACEMENT = {
    "tensors": [{"name": "a"}, {"name": "b"}], "skew": 1.25,
    "servers": [{"rank": 0, "bytes": 4096, "slices": 3, "memory_bytes": 3 << 20},
                {"rank": 1, "bytes": 5120, "slices": 2, "memory_bytes": 4 << 20}],
}

_PROGRAM = r'''#!/usr/bin/python3 -SE
import json, os, signal, sys

arguments = sys.argv[1:]
role = os.path.basename(sys.argv[0]).removeprefix("parley-")
option = lambda name: arguments[arguments.index(name) + 1]
if "--bad.key" in arguments:
    sys.stderr.write("E20260101 12:00:00.000001    77 main.cc:24] worker: unknown flag --bad.key; did you mean it?\n")
    sys.exit(2)
for page in ("--print-config-json", "--print-placement", "--print-config"):
    if page in arguments:
        print(os.environ.get("FAKE" + page.upper().replace("-", "_"), "{}"))
        sys.exit(0)
name = f"{role} {option('--rank')}"
signal.alarm(60)


def step(what, *values):
    if what == "write":
        text = values[0].encode("latin-1") * (values[1] if len(values) > 1 else 1)
        while text:
            text = text[os.write(1, text):]
    elif what == "error":
        os.write(2, f"E20260101 12:00:00.000001    77 main.cc:1] {name}: {values[0]}\n".encode())
    elif what == "arguments":
        print(json.dumps(arguments), flush=True)
    elif what == "pid":
        print(f"pid {os.getpid()}", flush=True)
    elif what == "progress":
        os.write(int(option("--progress-fd")), values[0].encode() + b"\n")
    elif what == "report":
        with open(os.path.join(option("--output-dir"), "report.json"), "w") as file:
            json.dump(values[0], file)
    elif what == "wait":  # for SIGTERM, as the programs do
        signal.sigwait({signal.SIGTERM})
        os.write(2, b"had SIGTERM\n")
        sys.exit(128 + signal.SIGTERM)
    elif what == "deaf":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        print("deaf", flush=True)
        signal.sigwait({signal.SIGUSR1})
    elif what == "raise":
        os.kill(os.getpid(), values[0])
    elif what == "grandchild":  # keeps our output open, and says who it is
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            signal.pause()
        print(f"grandchild {pid}", flush=True)
    elif what == "exit":
        sys.exit(values[0])


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
for one in json.loads(os.environ.get("FAKE", "{}")).get(name, []):
    step(*one)
'''


class Fakes:
    """A build folder with the two programs, a config and a folder for results, gone at the end of the test."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="parley-launcher-")))
        for role in ("server", "worker"):
            program = self.folder / role / f"parley-{role}"
            program.parent.mkdir()
            program.write_text(_PROGRAM, encoding="utf-8")
            program.chmod(0o755)
        self.config = self.folder / "job.toml"
        self.config.write_text("", encoding="utf-8")
        self.output = self.folder / "out"

    def command(self, *flags: str) -> list[str]:
        return [sys.executable, str(LAUNCH), str(self.config), "--build-dir", str(self.folder),
                "--output-dir", str(self.output), *flags]

    @staticmethod
    def environment(steps: dict[str, list[list[typing.Any]]], page: dict[str, typing.Any] | None = None,
                    **more: str) -> dict[str, str]:
        return {**os.environ, "FAKE": json.dumps(steps), "FAKE__PRINT_CONFIG_JSON": json.dumps(page or PAGE),
                "FAKE__PRINT_PLACEMENT": json.dumps(PLACEMENT), **more}

    def run(self, steps: dict[str, list[list[typing.Any]]], *flags: str,
            page: dict[str, typing.Any] | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.command(*flags), env=self.environment(steps, page), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=WAIT_SECONDS, cwd=self.folder, check=False)

    def start(self, steps: dict[str, list[list[typing.Any]]],
              page: dict[str, typing.Any] | None = None) -> "subprocess.Popen[str]":
        return subprocess.Popen(self.command(), env=self.environment(steps, page), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder)

    def report(self) -> dict[str, typing.Any]:
        return json.loads((self.output / "report.json").read_text(encoding="utf-8"))

    def log(self, name: str) -> bytes:
        return (self.output / "logs" / f"{name.replace(' ', '-')}.log").read_bytes()


def page(**changes: typing.Any) -> dict[str, typing.Any]:
    """PAGE with other top-level entries, and with keys as section__key."""
    changed = json.loads(json.dumps(PAGE))
    for name, value in changes.items():
        section, _, leaf = name.partition("__")
        if leaf:
            changed["config"][section][leaf] = value
        else:
            changed[name] = value
    return changed


def until(stream: typing.TextIO, count: int, part: str) -> list[str]:
    """Reads lines until `count` of them hold `part`, and returns those."""
    found: list[str] = []
    for line in stream:
        if part in line:
            found.append(line)
            if len(found) == count:
                return found
    raise AssertionError(f"the output ended after {len(found)} lines with {part!r}; expected {count}")


def watch(pids: typing.Iterable[int], stack: contextlib.ExitStack) -> list[int]:
    """A pidfd for each living process, which tells its end whoever reaps it."""
    files = [os.pidfd_open(pid) for pid in pids]
    for file in files:
        stack.callback(os.close, file)
    return files


def all_gone(files: list[int], seconds: float = 5.0) -> bool:
    return all(select.select([file], [], [], seconds)[0] for file in files)
