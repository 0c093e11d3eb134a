"""Runs clang-tidy over files of the compile commands in build/lint and remembers the clean ones.

A clean result is kept in the user's cache under a hash of everything of ours that it depends on:
the tool, its settings, the compile command, the file, and every header of the tree that it reaches.
A file that includes LibTorch takes half a minute, so repeats must cost nothing.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess

from lint_rules import includes

TOOL = "clang-tidy-16"


class Tidy:
    def __init__(self, root, cache):
        self.root = root
        self.build = root / "build" / "lint"
        self.cache = cache
        version = subprocess.run([TOOL, "--version"], capture_output=True, text=True, check=True)
        shared = [root / ".clang-tidy", *sorted((root / "schemas").glob("*.fbs"))]
        self.common = version.stdout + "".join(path.read_text() for path in shared)
        database = json.loads((self.build / "compile_commands.json").read_text())
        self.commands = {
            os.path.relpath(entry["file"], root): entry["command"].replace(str(root), ".")
            for entry in database
            if entry["file"].endswith(".cc")}

    @functools.cache
    def text(self, path):
        try:
            return (self.root / path).read_text()
        except FileNotFoundError:
            return ""

    @functools.cache
    def direct(self, path):
        return [name for _, quoted, name in includes(self.text(path)) if quoted]

    def reach(self, path):
        """The file and every header of the tree that it includes, directly or not."""
        seen, todo = set(), [path]
        while todo:
            current = todo.pop()
            if current not in seen:
                seen.add(current)
                todo.extend(self.direct(current))
        return sorted(seen)

    def files_for(self, changed):
        """The compiled files that show what changed; a header is seen through one that uses it."""
        chosen = {path for path in changed if path in self.commands}
        for header in (path for path in changed if path.endswith(".h")):
            own = re.sub(r"\.h$", ".cc", header)
            users = [path for path in self.commands if header in self.direct(path)]
            users.sort(key=lambda path: (len(self.text(path)), path))
            chosen.update([own] if own in self.commands else users[:1])
        return sorted(chosen)

    def key(self, path):
        digest = hashlib.sha256((self.common + self.commands[path]).encode())
        for part in self.reach(path):
            digest.update(f"\0{part}\0{self.text(part)}".encode())
        return digest.hexdigest()

    def tool(self, path, *options):
        return subprocess.run(
            [TOOL, "-p", self.build, "--quiet", *options, self.root / path],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def check(self, path):
        """What the tool finds in one file; empty when it is clean."""
        clean = self.cache / self.key(path)
        if clean.exists():
            return ""
        result = self.tool(path)
        if "Stack dump:" in result.stderr:  # The path analyzer crashes on some arithmetic.
            result = self.tool(path, "--checks=-clang-analyzer-*")
        if result.returncode == 0 and not result.stdout.strip():
            self.cache.mkdir(parents=True, exist_ok=True)
            clean.touch()
            return ""
        return result.stdout.strip() or result.stderr.strip()

    def run(self, paths, jobs, report):
        """Calls report(path, text) for each file as it ends; returns how many had findings."""
        faults = 0
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            futures = {pool.submit(self.check, path): path for path in paths}
            for future in concurrent.futures.as_completed(futures):
                text = future.result()
                faults += bool(text)
                report(futures[future], text)
        return faults
