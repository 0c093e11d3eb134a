"""What scripts/run does before the job: the build, and the data of the examples."""

import collections
import collections.abc
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from launcher.arguments import ROOT
from launcher.errors import LaunchError, exit_status
from launcher.screen import Screen
from launcher.settings import Settings

TAIL = 40  # lines of a failed build that are shown
PROGRAMS = ("parley-server", "parley-worker")
DATA = "data/mnist"  # What configs name, and what scripts/get-data writes below the root.
IDX_FILES = ("train-images", "train-labels", "t10k-images", "t10k-labels")

_NINJA = re.compile(r"\[(\d+)/(\d+)\]")


def build(preset: str, screen: Screen) -> None:
    """Builds both programs; says nothing but how far it is, unless it fails."""
    start = time.monotonic()
    tail: collections.deque[str] = collections.deque(maxlen=TAIL)
    command = [str(ROOT / "scripts" / "build"), preset, *PROGRAMS]
    with _tool(command) as process:
        assert process.stdout is not None
        for line in process.stdout:
            tail.append(line.rstrip())
            step = _NINJA.match(line)
            if step:
                screen.progress("build", int(step[1]), int(step[2]))
        returncode = process.wait()
    screen.close_bar()
    if returncode != 0:
        screen.page("\n".join(tail))
        again = f"scripts/build {preset} {' '.join(PROGRAMS)}"
        raise LaunchError(f"the build failed; again with all of its output: {again}", exit_status(returncode))
    screen.say(f"build: {preset} is up to date ({time.monotonic() - start:.1f} s)")


@contextlib.contextmanager
def _tool(command: list[str]) -> collections.abc.Iterator[subprocess.Popen[str]]:
    """A tool and all that it starts, which end with us when we are interrupted."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="backslashreplace", process_group=0)
    with process:
        try:
            yield process
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)  # Not reaped yet, so the group is ours.
            raise


def data_flags(settings: Settings) -> tuple[str, ...]:
    """Examples name their data relative to the root; from a folder that has no such data the programs are told
    where that is.

    A path that came by flag counts from where the user stands, as every path on a command line does.
    """
    named_by_flag = settings.data_dir_where.startswith("--")
    if settings.data_dir != DATA or named_by_flag or pathlib.Path(DATA).exists() or pathlib.Path.cwd() == ROOT:
        return ()
    return ("--data.dir", str(ROOT / DATA))


def data(settings: Settings, screen: Screen) -> None:
    """Fetches the default data set where that is what the config reads and it is not there yet."""
    folder = ROOT / DATA if data_flags(settings) else pathlib.Path(settings.data_dir)
    if settings.data_kind != "mnist":
        return
    if folder.resolve() == (ROOT / DATA).resolve() and not has_idx_files(folder):
        screen.say(f"data: fetching MNIST into {folder}")
        command = [sys.executable, str(ROOT / "scripts" / "get-data"), "mnist"]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise LaunchError(result.stderr.strip() or f"{command[1]}: status {result.returncode}", 1)
    screen.say(f"data: {folder}")


def has_idx_files(folder: pathlib.Path) -> bool:
    """Whether all four files are there, in one of the spellings that the programs read."""
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError:
        return False
    return all(any(re.fullmatch(rf"{stem}[-.]idx[13]-ubyte(\.gz)?", name) for name in names) for stem in IDX_FILES)
