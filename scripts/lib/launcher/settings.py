"""The effective config, as parley-worker reads it from file and flags: keys are known in one place only."""

import dataclasses
import json
import pathlib
import subprocess
import typing

from launcher import lines
from launcher.errors import LaunchError, exit_status

ANSWER_SECONDS = 60  # For a page; a cold start of LibTorch from a slow disk takes some.


@dataclasses.dataclass(frozen=True)
class Settings:
    mode: str
    servers: int  # parameter servers; in all-reduce mode none, but one process to coordinate
    workers: int
    shards: int
    coordinator: str
    bind: str
    data_port: int
    job: str
    data_kind: str
    data_dir: str
    data_dir_where: str  # "default", a place in the file, or the flag
    grace_seconds: float
    inactive: frozenset[str]  # Keys without effect in this mode; as flags they would be errors.
    warning: str

    @property
    def server_processes(self) -> int:
        return max(1, self.servers) if self.uses_network else 0

    @property
    def uses_network(self) -> bool:
        return "cluster.coordinator" not in self.inactive


def ask(program: pathlib.Path, arguments: list[str]) -> str:
    """What the program prints for one of its pages. Its own faults, and its exit status, become ours."""
    command = [str(program), *arguments]
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise LaunchError(f"{program}: no answer within {ANSWER_SECONDS} s") from None
    except OSError as error:
        raise LaunchError(f"{program}: cannot be started: {error.strerror}; scripts/build makes it") from None
    if answer.returncode != 0:
        faults = [lines.parse(lines.readable(line), "worker").text for line in answer.stderr.splitlines()]
        text = "\n".join(faults) or f"{program}: ended without a word"
        raise LaunchError(text, exit_status(answer.returncode))
    return answer.stdout.decode("utf-8", "replace")


def ask_json(program: pathlib.Path, arguments: list[str]) -> dict[str, typing.Any]:
    page = ask(program, arguments)
    try:
        return json.loads(page)
    except ValueError as error:
        raise LaunchError(f"{program} {arguments[-1]}: its answer is no JSON: {error}") from None


def read(program: pathlib.Path, config: pathlib.Path, flags: tuple[str, ...]) -> Settings:
    page = ask_json(program, ["--config", str(config), *flags, "--print-config-json"])
    try:
        return from_page(page)
    except KeyError as error:
        raise LaunchError(f"{program} --print-config-json: no {error} in its answer; is it of this tree?") from None


def from_page(page: dict[str, typing.Any]) -> Settings:
    keys = page["config"]
    cluster = keys["cluster"]
    return Settings(
        mode=keys["sync"]["mode"], servers=page["servers"], workers=page["workers"], shards=keys["server"]["shards"],
        coordinator=cluster["coordinator"], bind=cluster["bind"], data_port=cluster["data_port"], job=cluster["job"],
        data_kind=keys["data"]["kind"], data_dir=keys["data"]["dir"], data_dir_where=page["provenance"]["data.dir"],
        grace_seconds=keys["launch"]["grace_seconds"], inactive=frozenset(page["inactive"]), warning=page["warning"])
