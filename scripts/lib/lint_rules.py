"""The rules that are checked on the text alone: who includes whom, what is never called, lengths.

`check(path, text)` yields what it finds in one file; paths are relative to the root, with slashes.
Nothing here reads a file or runs a program, so that tests/unit/lint_test.py can show each rule a
fault.
"""

import pathlib
import re
import typing

CPP = (".h", ".cc", ".cu", ".cuh")
LENGTH_SOFT = 300
LENGTH_HARD = 500
BASH_LENGTH = 60
COLUMNS = 120  # Of Python; clang-format holds C++ to 100.

# Bottom to top: a file includes only its own layer and lower ones.
TOP = ["schemas", "common", "server", "worker", "tests"]
COMMON = [
    "base", "data", "config", "layout", "wire", "optimizer", "control", "observe", "transport",
    "process",
]

# The sans-I/O core is a function of (state, message, now).
CORE = ("server/core/", "worker/core/")
CORE_LAYERS = {"base", "data", "layout", "wire", "optimizer", "control"}
CORE_LIBRARIES = ("flatbuffers/", "fmt/", "tl/", "schemas/")
CORE_BANNED_STD = {
    "thread", "mutex", "shared_mutex", "condition_variable", "future", "semaphore", "latch",
    "barrier", "stop_token", "fstream", "iostream", "filesystem", "random", "cstdio", "csignal",
}

# A library that only some places may see: its headers, those places, why.
LIBRARIES = [
    (r"(torch|ATen|c10)/", ("worker/", "tests/unit/torch/", "tests/unit/cuda/"),
     "LibTorch is seen by the worker only"),
    (r"glog/", ("common/base/log.cc",), "c10 defines the same macros as glog"),
    (r"zmq", ("common/transport/", "tests/support/", "tests/unit/"),
     "sockets live in common/transport"),
    (r"(CLI/|toml\+\+/)", ("common/config/", "tests/"),
     "a key is defined and read in common/config"),
    (r"(gloo/|nccl|cuda)", ("worker/", "tests/"), "collectives and devices are the worker's"),
    (r"(gtest|gmock)/", ("tests/",), "tests live in tests/"),
]

# Files that may start a thread: each is named for the thread it runs, or builds the process.
THREAD_OWNER = re.compile(r"(^|_)(main|process|server|worker|loop|thread|writer|loader)$")

# Where tests are found by glob (tests/CMakeLists.txt); one that lies elsewhere would never run.
TEST_FOLDERS = {
    "_test.cc": {"tests/unit", "tests/unit/torch", "tests/unit/cuda", "tests/simulation"},
    "_test.py": {"tests/unit", "tests/integration"},
}


class Finding(typing.NamedTuple):
    path: str
    line: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}"


# Reading C++

_COMMENT = r"//[^\n]*|/\*.*?\*/"
_RAW = r'R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)"'
_STRING = _RAW + r'|"(?:\\.|[^"\\\n])*"' + r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
_TOKEN = re.compile(f"(?P<comment>{_COMMENT})|(?P<string>{_STRING})", re.S)
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def without_comments(text):
    return _TOKEN.sub(lambda m: _blank(m) if m.group("comment") else m.group(), text)


def without_comments_and_strings(text):
    return _TOKEN.sub(_blank, text)


def includes(text):
    """(line, quoted, name) of each include."""
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        match = _INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def is_core(path):
    return path.startswith(CORE)


# Includes


def include_fault(path, quoted, name):
    """Why `path` may not include `name`, or None."""
    own, other = path.split("/"), name.split("/")
    if quoted and other[0] not in TOP:
        return f'"{name}": write ours from the root ("common/base/error.h"), others with <>'
    for headers, places, reason in LIBRARIES:
        if not quoted and re.match(headers, name) and not path.startswith(places):
            return f"<{name}> is for {', '.join(places)} only: {reason}"
    fault = layer_fault(own, other) if quoted else None
    if fault is None and is_core(path):
        fault = core_fault(quoted, name, other)
    return f"{fault}, so it cannot include {name}" if fault else None


def layer_fault(own, other):
    if own[0] not in TOP or other[0] == own[0] != "common":
        return None
    if other[0] != own[0]:
        if {own[0], other[0]} == {"server", "worker"}:
            return "server and worker never see each other"
        if TOP.index(other[0]) > TOP.index(own[0]):
            return f"{own[0]}/ lies below {other[0]}/"
        return None
    lower, upper = other[1], own[1]
    if lower not in COMMON or upper not in COMMON:
        unknown = upper if upper not in COMMON else lower
        return f"common/{unknown} has no place in the order of layers in scripts/lib/lint_rules.py"
    if COMMON.index(lower) > COMMON.index(upper):
        return f"common/{upper} lies below common/{lower}"
    if lower == "config" and upper not in ("config", "process"):
        return f"the config is read at the edge, never by common/{upper}"
    return None


def core_fault(quoted, name, other):
    core = "this file is sans-I/O core"
    if quoted and other[0] == "common":
        layers = ", ".join(sorted(CORE_LAYERS))
        return None if other[1] in CORE_LAYERS else f"{core}: of common it sees {layers} only"
    if quoted and other[0] in ("server", "worker"):
        return None if is_core(name) else f"{core}: no edges of the process"
    if name.startswith(CORE_LIBRARIES):
        return None
    if "/" in name or "." in name or name in CORE_BANNED_STD:
        return f"{core}: no thread, lock, file, socket or clock"
    return None


# Calls


class Ban(typing.NamedTuple):
    pattern: re.Pattern
    applies: typing.Callable[[str], bool]
    reason: str


def _stem(path):
    return pathlib.PurePosixPath(path).stem


def _not_main(path):
    return _stem(path) != "main"


def _quiet_test(path):
    return path.startswith(("tests/unit/", "tests/simulation/"))


def _may_not_start_threads(path):
    if path.startswith("tests/"):
        return path.startswith("tests/simulation/")
    return not (path.startswith("common/process/") or THREAD_OWNER.search(_stem(path)))


def _anywhere(_path):
    return True


_RANDOM = "randomness comes from common/base/random.h"
BANS = [
    Ban(re.compile(r"\bsystem_clock\b"), _not_main,
        "the wall clock is never read; time is passed in as Instant"),
    Ban(re.compile(r"_clock\s*::\s*now\b"), is_core,
        "the core is told the time, it does not read it"),
    Ban(re.compile(r"\b(secure_)?getenv\s*\("), _not_main,
        "the environment is read in main only"),
    Ban(re.compile(r"(?<![\w.>])(s?rand|rand_r|[de]rand48)\s*\("), _anywhere, _RANDOM),
    Ban(re.compile(r"\b(random_device|mt19937\w*|default_random_engine)\b"), _anywhere, _RANDOM),
    Ban(re.compile(r"\b(sleep_for|sleep_until|u?sleep|nanosleep)\s*\("), _quiet_test,
        "unit tests and the simulator do not sleep"),
    Ban(re.compile(r"\bstd\s*::\s*j?thread\b(?!\s*::)"), _may_not_start_threads,
        "a thread is started only in a file named for it (*_loop, *_thread, main, …)"),
]


def call_faults(path, text):
    for number, line in enumerate(without_comments_and_strings(text).splitlines(), 1):
        for ban in BANS:
            match = ban.pattern.search(line)
            if match and ban.applies(path):
                call = match.group().strip()
                yield Finding(path, number, f"'{call}' is banned here: {ban.reason}")


# Files

_UNFINISHED = re.compile(r"\b(TO[D]O|FIX[M]E|XX[X])\b")


def text_faults(path, text):
    lines = text.splitlines()
    if text and not text.endswith("\n"):
        yield Finding(path, len(lines), "the file does not end with a newline")
    python = path.endswith(".py") or text.startswith("#!/usr/bin/python3")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield Finding(path, number, "trailing white space")
        if "\t" in line:
            yield Finding(path, number, "a tab")
        if _UNFINISHED.search(line):
            yield Finding(path, number, "unfinished work is an issue, not a comment")
        if python and len(line) > COLUMNS:
            yield Finding(path, number, f"{len(line)} columns; at most {COLUMNS}")


def length_faults(path, text):
    count = text.count("\n")
    limit = BASH_LENGTH if text.startswith(("#!/bin/bash", "#!/usr/bin/env bash")) else LENGTH_HARD
    if count > limit:
        kind = "a bash script (write it in Python)" if limit == BASH_LENGTH else "a file"
        yield Finding(path, count, f"{count} lines; {kind} has at most {limit}")


def place_faults(path):
    parent = str(pathlib.PurePosixPath(path).parent)
    for ending, folders in TEST_FOLDERS.items():
        if path.endswith(ending) and parent not in folders:
            places = ", ".join(sorted(folders))
            yield Finding(path, 1, f"never run: tests are found in {places} only")


def is_source(path):
    name = pathlib.PurePosixPath(path).name
    return path.endswith((*CPP, ".py", ".fbs", ".cmake")) or name == "CMakeLists.txt" or (
        path.startswith(("scripts/", ".ci/")) and "." not in name)


def check(path, text):
    """Yields the findings in one file of the tree."""
    if not is_source(path):
        return
    yield from text_faults(path, text)
    yield from length_faults(path, text)
    yield from place_faults(path)
    if not path.endswith(CPP):
        return
    for number, quoted, name in includes(text):
        fault = include_fault(path, quoted, name)
        if fault:
            yield Finding(path, number, fault)
    yield from call_faults(path, text)
    if path.endswith((".h", ".cuh")) and not re.search(r"^#pragma once$", text, re.M):
        yield Finding(path, 1, "a header without #pragma once")


def notes(path, text):
    """What is worth a look but no fault."""
    count = text.count("\n")
    if is_source(path) and LENGTH_SOFT < count <= LENGTH_HARD:
        yield Finding(path, count, f"{count} lines; beyond {LENGTH_SOFT} it is usually two ideas")
