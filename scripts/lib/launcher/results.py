"""The folder that receives report.json, metrics.jsonl and logs."""

import collections.abc
import contextlib
import dataclasses
import fcntl
import itertools
import os
import pathlib
import time

from launcher import report
from launcher.arguments import Arguments
from launcher.errors import LaunchError


@dataclasses.dataclass(frozen=True)
class Results:
    path: pathlib.Path

    @property
    def logs(self) -> pathlib.Path:
        return self.path / "logs"


def default_path(config: pathlib.Path) -> pathlib.Path:
    return pathlib.Path("runs") / f"{config.stem}-{time.strftime('%Y%m%d-%H%M%S')}"


@contextlib.contextmanager
def open_folder(given: Arguments) -> collections.abc.Iterator[Results]:
    """The folder, locked while we use it; a folder that the user chose loses the results of an earlier run."""
    try:
        results = Results(given.output_dir or _new_folder(default_path(given.config)))
        results.logs.mkdir(parents=True, exist_ok=True)
        handle = os.open(results.path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise LaunchError(f"{error.filename}: no folder for results can be made: {error.strerror}", 2) from None
    try:
        _lock(handle, results.path)
        old = (results.path / report.NAME, results.path / report.METRICS, *results.logs.glob("*.log"))
        for path in old:
            path.unlink(missing_ok=True)
        yield results
    finally:
        os.close(handle)


def _new_folder(path: pathlib.Path) -> pathlib.Path:
    """Makes the folder; where another run began in the same second, with a number behind its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    free = path
    for number in itertools.count(2):
        with contextlib.suppress(FileExistsError):
            free.mkdir()
            break
        free = path.with_name(f"{path.name}-{number}")
    return free


def _lock(handle: int, path: pathlib.Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LaunchError(f"{path}: another run writes its results there", 2) from None
