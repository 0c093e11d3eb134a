"""Runs lint, the build and every test, also under the sanitizers, and compiles the CUDA parts.

Ends with the ten slowest tests and one closing line that counts the tests of all ctest runs; a
stage that fails without running tests (lint, a build) counts as one failed.
"""

import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
JOBS = str(os.cpu_count() or 2)
SANITIZERS = ("asan", "tsan")


@dataclasses.dataclass
class Tally:
    passed: int = 0
    skipped: int = 0
    failed: list = dataclasses.field(default_factory=list)
    timed: list = dataclasses.field(default_factory=list)  # (seconds, preset, test)
    stages: list = dataclasses.field(default_factory=list)  # (seconds, name)


def run(command):
    """Runs a command with its output shown; True when it succeeds."""
    sys.stdout.flush()
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode == 0


def stage(tally, name, command):
    """Runs a command; its failure counts as one failed test under the stage's name."""
    print(f"\n=== {name}", flush=True)
    start = time.monotonic()
    good = run(command)
    tally.stages.append((time.monotonic() - start, name))
    if not good:
        tally.failed.append(name)
    return good


def build(tally, preset, *targets):
    return stage(tally, f"build {preset}", ["scripts/build", preset, *targets])


def tests(tally, preset):
    """Runs all tests of a preset and adds what ctest wrote down about them."""
    print(f"\n=== tests {preset}", flush=True)
    results = ROOT / "build" / preset / "results.xml"
    results.unlink(missing_ok=True)
    start = time.monotonic()
    good = run(["ctest", "--preset", preset, "-j", JOBS, "--output-junit", results])
    tally.stages.append((time.monotonic() - start, f"tests {preset}"))
    failed_before = len(tally.failed)
    if results.exists():
        for case in xml.etree.ElementTree.parse(results).iter("testcase"):
            count_case(tally, preset, case)
    if not good and len(tally.failed) == failed_before:
        tally.failed.append(f"tests {preset}: ctest itself failed")


def count_case(tally, preset, case):
    name, status = case.get("name"), case.get("status")
    tally.timed.append((float(case.get("time") or 0), preset, name))
    if status == "run":
        tally.passed += 1
    elif was_skipped(case):
        tally.skipped += 1
        print(f"skipped: {preset}: {name}")
    else:
        tally.failed.append(f"{preset}: {name}")


def was_skipped(case):
    """Whether the test itself asked to be skipped; ctest writes a missing program down alike."""
    note = case.find("skipped")
    return note is not None and note.get("message", "").startswith("SKIP_")


def has_cuda_toolkit():
    folders = [os.environ.get("PATH", ""), "/usr/local/cuda/bin"]
    if "CUDA_HOME" in os.environ:
        folders.append(f"{os.environ['CUDA_HOME']}/bin")
    return shutil.which("nvcc", path=os.pathsep.join(folders)) is not None


def close(tally, began):
    print("\nSlowest tests:")
    for seconds, preset, name in sorted(tally.timed, reverse=True)[:10]:
        print(f"  {seconds:7.2f} s  {preset:8} {name}")
    print("Stages:")
    for seconds, name in tally.stages:
        print(f"  {seconds:7.1f} s  {name}")
    print(f"  {time.monotonic() - began:7.1f} s  in all")
    for name in tally.failed:
        print(f"FAILED: {name}")
    skipped = f", {tally.skipped} skipped" if tally.skipped else ""
    print(f"{tally.passed} passed, {len(tally.failed)} failed{skipped}")
    return 1 if tally.failed or not tally.passed else 0


def main():
    parser = argparse.ArgumentParser(prog="scripts/test", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the release build and its tests")
    arguments = parser.parse_args()
    began, tally = time.monotonic(), Tally()
    if not arguments.quick:
        stage(tally, "lint", ["scripts/lint"])
    if build(tally, "release"):
        tests(tally, "release")
    if not arguments.quick:
        for preset in SANITIZERS:
            if build(tally, preset):
                tests(tally, preset)
        if has_cuda_toolkit():
            build(tally, "cuda", "parley_cuda_parts")
        else:
            print("\n=== no CUDA toolkit here: the CUDA parts are left out")
    return close(tally, began)


if __name__ == "__main__":
    sys.exit(main())
