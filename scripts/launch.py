#!/usr/bin/python3
"""Starts the servers and workers of one job on this machine and stays with them to their end.

scripts/run calls it after the set-up, with --prepare: build the programs and fetch the data first. Without it, it
starts what is built already. scripts/lib/launcher/__init__.py says which part lives where.
"""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))

from launcher import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main.main(sys.argv[1:]))
