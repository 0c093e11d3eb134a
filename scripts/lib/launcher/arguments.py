"""The command line of scripts/run: a few flags of our own; all others are the programs'."""

import argparse
import collections.abc
import dataclasses
import pathlib
import typing

ROOT = pathlib.Path(__file__).resolve().parents[3]

# What each process is given by us.
OURS = {"--config", "--rank", "--progress-fd", "--start-count"}
# Pages that parley-worker prints; nothing is started.
PAGES = {"--print-config", "--print-config-json", "--print-config-markdown", "--print-placement", "--check-config",
         "--version"}

EPILOG = """Every key of the config is a flag: --section.key VALUE (docs/configuration.md). --print-config shows the
value of every key and where it came from, --check-config only checks; neither starts anything."""


@dataclasses.dataclass(frozen=True)
class Arguments:
    config: pathlib.Path
    flags: tuple[str, ...]  # For the programs, as they were given.
    build_dir: pathlib.Path
    preset: str
    prepare: bool
    output_dir: pathlib.Path | None
    dry_run: bool
    page: bool

    @property
    def server(self) -> pathlib.Path:
        return self.build_dir / "server" / "parley-server"

    @property
    def worker(self) -> pathlib.Path:
        return self.build_dir / "worker" / "parley-worker"


def flag_name(argument: str) -> str:
    return argument.split("=", 1)[0]


def has_flag(flags: collections.abc.Iterable[str], name: str) -> bool:
    return any(flag_name(flag) == name for flag in flags)


def without_flag(flags: collections.abc.Iterable[str], name: str) -> tuple[str, ...]:
    """The flags less `name VALUE` and `name=VALUE`."""
    kept: list[str] = []
    rest = iter(flags)
    for flag in rest:
        if flag == name:
            next(rest, None)
        elif not flag.startswith(f"{name}="):
            kept.append(flag)
    return tuple(kept)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/run", usage="scripts/run CONFIG [--section.key VALUE]... [options]", allow_abbrev=False,
        description="Trains on this machine: set-up, build, data, then the servers and workers of CONFIG.",
        epilog=EPILOG)
    parser.add_argument("config", metavar="CONFIG", type=pathlib.Path, help="a TOML file; configs/ has examples")
    parser.add_argument("--output-dir", metavar="DIR", type=pathlib.Path,
                        help="for report.json, metrics.jsonl and logs (default: runs/NAME-TIME)")
    parser.add_argument("--device", metavar="DEVICE", help="short for --worker.device: auto, cpu or cuda:N")
    parser.add_argument("--dry-run", action="store_true",
                        help="only show what would be started and what each server would hold")
    parser.add_argument("--insecure", action="store_true", help="allow listening beyond this host without keys")
    parser.add_argument("--preset", default="release", metavar="NAME",
                        help="what to build and start, of CMakePresets.json (default: release)")
    parser.add_argument("--build-dir", metavar="DIR", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--prepare", action="store_true", help=argparse.SUPPRESS)
    return parser


def _fault(given: argparse.Namespace, flags: list[str]) -> str | None:
    for name in map(flag_name, flags):
        if name in OURS:
            return f"{name}: each process is given its own; leave it out"
    if not given.config.is_file():
        found = "a folder" if given.config.is_dir() else "no such file"
        return f"{given.config}: {found}; expected a config, in front of the flags of its keys"
    if given.output_dir is not None and not str(given.output_dir).strip():
        return '--output-dir: found "", expected a path'
    return None


def parse(argv: list[str]) -> Arguments:
    """Ends the program with status 2 and a line where the command line is wrong, as argparse does."""
    parser = _parser()
    given, flags = parser.parse_known_args(argv)
    fault = _fault(given, flags)
    if fault:
        _end(parser, fault)
    if given.device is not None:
        flags += ["--worker.device", given.device]
    if given.insecure:
        flags.append("--insecure")
    return Arguments(
        config=given.config, flags=tuple(flags), build_dir=given.build_dir or ROOT / "build" / given.preset,
        preset=given.preset, prepare=given.prepare, output_dir=given.output_dir, dry_run=given.dry_run,
        page=any(flag_name(flag) in PAGES for flag in flags))


def _end(parser: argparse.ArgumentParser, fault: str) -> typing.NoReturn:
    parser.exit(2, f"run: {fault}\n")
