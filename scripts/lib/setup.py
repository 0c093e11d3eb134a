"""Installs what Parley needs: Debian packages, and LibTorch in the user's cache folder.

It can be run again at any time, by several clones at once (a lock in the cache folder), and after
having been killed: Debian packages are asked for from dpkg each time, and the Python environment
that holds LibTorch counts as complete only once its stamp, written last, names the present list of
packages. An environment is repaired in place, never removed while it works, since other clones may
be building against it.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import subprocess
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"
TORCH_VERSION = "2.11.0"
STAMP = "parley-complete"


class SetupError(Exception):
    """One line for the user: what failed and what to do about it."""


def say(text):
    print(f"setup: {text}", flush=True)


def run(command, failure, env=None, quiet=False):
    """Runs a command, its output shown (quiet: only when it fails); a failure becomes one line."""
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True} if quiet else {}
    result = subprocess.run(command, stdin=subprocess.DEVNULL, env=env, check=False, **output)
    if result.returncode != 0:
        sys.stderr.write(result.stdout or "")
        shown = " ".join(map(str, command))
        raise SetupError(f"{failure} (exit status {result.returncode}): {shown}")


def read_list(path):
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "parley"


@contextlib.contextmanager
def only_one(folder):
    """Holds the lock of the cache folder; the kernel frees it when the holder dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "setup.lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another set-up that holds {lock.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# Debian packages


def missing_packages():
    wanted = read_list(SCRIPTS / "debian-packages.txt")
    try:
        query = subprocess.run(
            ["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *wanted],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SetupError("no dpkg here; Parley is set up on Debian 12. It needs what these Debian "
                         f"packages hold: {' '.join(wanted)}") from None
    rows = (line.split() for line in query.stdout.splitlines())
    installed = {row[0] for row in rows if row[1:] == ["installed"]}
    return [name for name in wanted if name not in installed]


def install_packages():
    missing = missing_packages()
    if missing and os.geteuid() != 0:
        raise SetupError(
            f"{len(missing)} Debian packages are missing; run: sudo apt-get update && "
            f"sudo apt-get install -y --no-install-recommends {' '.join(missing)}")
    if not missing:
        return
    with only_one(cache_folder()):
        missing = missing_packages()  # Another set-up may have been faster.
        if not missing:
            return
        say(f"installing {len(missing)} Debian packages: {' '.join(missing)}")
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"]
        run([*apt, "update"], "the package lists could not be fetched", env, quiet=True)
        run([*apt, "install", "-y", "--no-install-recommends", *missing],
            "Debian packages could not be installed", env, quiet=True)


# LibTorch


def works(python, *arguments):
    command = [python, *arguments]
    return python.exists() and subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def make_environment(venv):
    python = venv / "bin" / "python3"
    if works(python, "-m", "pip", "--version"):
        return python
    say(f"making the Python environment {venv}")
    run([PYTHON, "-m", "venv", venv], "the Python environment could not be made")
    if not works(python, "-m", "pip", "--version"):  # Half-made by a set-up that was killed.
        run([PYTHON, "-m", "venv", "--clear", venv], "the Python environment could not be made")
    return python


def damaged(venv):
    """Packages in the environment that pip did not finish: it writes RECORD and INSTALLER last."""
    names = []
    for info in sorted(venv.glob("lib/python3*/site-packages/*.dist-info")):
        record = info / "RECORD"
        name, version = info.name.removesuffix(".dist-info").split("-")[:2]
        if not (record.exists() and (info / "INSTALLER").exists() and files_match(record)):
            names.append(f"{name}=={version}")
    return names


def files_match(record):
    for line in record.read_text().splitlines():
        name, digest, size = line.rsplit(",", 2)
        if not digest:
            continue
        try:
            found = (record.parent.parent / name.strip('"')).stat().st_size
        except FileNotFoundError:
            return False
        if found != int(size):
            return False
    return True


def install_torch(flavour):
    """Brings the flavour's environment up to its list of packages and returns its folder."""
    requirements = SCRIPTS / f"requirements-{flavour}.txt"
    venv = cache_folder() / f"torch-{TORCH_VERSION}-{flavour}"
    stamp = venv / STAMP
    key = hashlib.sha256("\n".join(read_list(requirements)).encode()).hexdigest() + "\n"
    if stamp.exists() and stamp.read_text() == key:
        return venv
    with only_one(cache_folder()):
        if stamp.exists() and stamp.read_text() == key:  # Another set-up was faster.
            return venv
        python = make_environment(venv)
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        if not sys.stdout.isatty():
            pip.append("--quiet")
        dependencies = ["--no-deps"] if flavour == "cpu" else []
        say(f"installing LibTorch {TORCH_VERSION} ({flavour}) into {venv}")
        run([*pip, *dependencies, "-r", requirements], "LibTorch could not be installed")
        broken = damaged(venv)
        if broken:
            say(f"repairing what an earlier set-up left unfinished: {' '.join(broken)}")
            run([*pip, "--no-deps", "--force-reinstall", *broken], "LibTorch could not be repaired")
            if damaged(venv):
                raise SetupError(f"LibTorch is damaged; remove {venv} and run scripts/setup again")
        unfinished = stamp.with_suffix(".unfinished")
        unfinished.write_text(key)
        unfinished.replace(stamp)
    return venv


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/setup", description="Installs what is missing to build and run Parley.")
    parser.add_argument(
        "--cuda", action="store_true",
        help="also install LibTorch with all its CUDA libraries (4.7 GB), beside the CPU one")
    parser.add_argument("--quiet", action="store_true", help="say nothing when nothing is missing")
    arguments = parser.parse_args()
    try:
        install_packages()
        venvs = [install_torch("cpu")] + ([install_torch("cuda")] if arguments.cuda else [])
    except (SetupError, OSError) as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    if not arguments.quiet:
        folders = ", ".join(map(str, venvs))
        say(f"complete (Debian packages; LibTorch {TORCH_VERSION} in {folders})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
