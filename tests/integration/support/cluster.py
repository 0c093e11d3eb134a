"""A job made of real processes on loopback, on ports that the system hands out.

    cluster = Cluster(self, mode="ssp", workers=3, flags={"sync.staleness": 1}, plan={...})
    cluster.start()
    reports = cluster.finish()          # everybody exits with 0; worker-RANK.json by rank
    errors = cluster.fail(status=1)     # or: everybody ends with that status; the last error of each by name

Whatever is still running when the test ends is killed by pid. `finish` and `fail` also check that
no process, port or file was left.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import tempfile
import time

from tests.integration.support.process import PATIENCE, Process

# From the end of the last worker to the end of the last server, and from a fault to the last end.
CLOSING_SECONDS = 10


def program(variable):
    path = os.environ.get(variable)
    if not path:
        raise RuntimeError(f"{variable} is not set: these tests are run by ctest (scripts/test)")
    return path


def _toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def plan_text(plan):
    """A fake worker's plan (tests/support/fake_worker/plan.h) as TOML."""
    lines = [f"{key} = {_toml(value)}" for key, value in plan.items() if key != "tensor"]
    for tensor in plan["tensor"]:
        lines.append("[[tensor]]")
        lines += [f"{key} = {_toml(value)}" for key, value in tensor.items()]
    return "\n".join(lines) + "\n"


def free_port():
    """A port that nobody listens on now, below those that the system hands out itself."""
    first = 20000 + os.getpid() % 10000
    for port in range(first, 32000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port below 32000")


# Two tensors, in slices of several sizes: what most tests train.
PLAN = {
    "steps": [20],
    "tensor": [
        {"name": "first.weight", "shape": [40, 30], "initial": "hash"},
        {"name": "first.bias", "shape": [40], "group": 1},
        {"name": "second.weight", "shape": [10, 40], "initial": "hash"},
    ],
}

# Part of a plan: every worker waits at that clock for Cluster.release(), so that what a test does meanwhile needs no
# time.
HOLD = {"hold": {"clock": 5, "file": "go"}}


class Cluster:
    def __init__(self, test, mode="bsp", servers=2, workers=2, plan=None, flags=None, coordinator="127.0.0.1:0"):
        self.test = test
        self.mode = mode
        self.servers = servers
        self.workers = workers
        self.plan = PLAN if plan is None else plan
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="parley-test-"))
        self.flags = {"sync.mode": mode, "cluster.workers": workers}
        if mode != "none":
            # Where no test of losing a process is meant, a machine that is busy with other tests must not look like
            # one.
            self.flags.update({"server.slice_bytes": 1024, "cluster.heartbeat_timeout": 30})
        if mode in ("bsp", "ssp", "asp"):
            self.flags["cluster.servers"] = servers
        else:
            self.servers = 0 if mode == "none" else 1  # of all-reduce: the coordinator alone
        self.flags.update(flags or {})
        self.coordinator = coordinator
        self.processes = {}
        self.ports = set()
        test.addCleanup(self.clean_up)

    # Starting

    def start(self):
        self.start_servers()
        for rank in range(self.workers if self.mode != "none" else 1):
            self.start_worker(rank)
        return self

    def start_servers(self):
        for rank in range(self.servers):
            self.start_server(rank)
        return self

    def start_server(self, rank, flags=None, extra=(), name=None, prepare=None):
        first = rank == 0 and self.coordinator.endswith(":0")
        command = [program("PARLEY_SERVER"), "--rank", str(rank), *self._flags(flags), *extra]
        if first:
            command += ["--progress-fd", "1"]
        process = self._start(name or f"server {rank}", command, prepare=prepare)
        if first:
            self.coordinator = process.wait_line(r'"coordinator": "([^"]+)"').group(1)
        return process

    def start_worker(self, rank, flags=None, plan=None, extra=(), name=None, prepare=None):
        command = [program("FAKE_WORKER"), *self._flags(flags), "--output-dir", "out", *extra]
        if rank is not None:
            command += ["--rank", str(rank)]
        name = name or f"worker {rank}"
        path = self.folder / f"{name.replace(' ', '-')}.toml"
        path.write_text(plan_text(self.plan if plan is None else plan), encoding="utf-8")
        return self._start(name, command, {"FAKE_WORKER_PLAN": str(path)}, prepare)

    def start_real_worker(self, rank, flags=None, extra=()):
        command = [program("PARLEY_WORKER"), "--rank", str(rank), *self._flags(flags), "--output-dir", "out", *extra]
        return self._start(f"worker {rank}", command)

    def _flags(self, own):
        flags = {**self.flags, **(own or {})}
        if self.mode != "none":
            flags.setdefault("cluster.coordinator", self.coordinator)
        return [text for key, value in flags.items() for text in (f"--{key}", str(value))]

    def _start(self, name, command, environment=None, prepare=None):
        assert name not in self.processes, name
        process = Process(name, command, self.folder, {**os.environ, **(environment or {})}, prepare)
        self.processes[name] = process
        return process

    def __getitem__(self, name):
        return self.processes[name]

    def of(self, role):
        return [process for name, process in self.processes.items() if name.startswith(role)]

    def wait_training(self):
        """Until every worker holds its first weights."""
        for process in self.of("worker"):
            process.wait_line("trains from clock")
        return self

    def wait_held(self):
        """Until every worker waits for the file that the plan (HOLD) names."""
        for process in self.of("worker"):
            process.wait_line("waits for file go at clock")
        return self

    def release(self):
        (self.folder / "go").touch()
        return self

    # Ending

    def finish(self, timeout=PATIENCE):
        """Everybody ends with 0, servers within seconds of the last worker. The workers' reports, by rank."""
        self._wait_all(0, timeout)
        workers = [process.ended for process in self.of("worker")]
        servers = [process.ended for process in self.of("server")]
        if servers:
            self.test.assertLess(max(servers) - max(workers), CLOSING_SECONDS, self.tails())
        self.assert_nothing_left()
        return self.reports()

    def fail(self, status=1, timeout=PATIENCE, within=None):
        """Everybody ends with `status`, at most `within` seconds after now. Their last errors, by name."""
        since = time.monotonic()
        self._wait_all(status, timeout)
        if within is not None:
            last = max(process.ended for process in self.processes.values())
            self.test.assertLess(last - since, within, self.tails())
        self.assert_nothing_left()
        return {name: process.last_error() for name, process in self.processes.items()}

    def _wait_all(self, status, timeout):
        deadline = time.monotonic() + timeout
        for process in list(self.processes.values()):
            self._note_ports(process)
            found = process.wait(max(0.1, deadline - time.monotonic()))
            self.test.assertEqual(found, status, f"{process.name} ended with {found}\n{self.tails()}")

    def forget(self, name):
        """A process whose end the test has seen to; not waited for any more."""
        process = self.processes.pop(name)
        process.end()
        return process

    def reports(self):
        found = [json.loads(path.read_text()) for path in sorted((self.folder / "out").glob("worker-*.json"))]
        return sorted(found, key=lambda report: report["rank"])

    def tails(self):
        return "\n".join(process.tail() for process in self.processes.values())

    def _note_ports(self, process):
        for line in process.lines:
            self.ports |= {int(port) for port in re.findall(r" on tcp://\S*:(\d+)$", line)}

    def assert_nothing_left(self):
        for process in self.processes.values():
            self._note_ports(process)
            self.test.assertFalse(os.path.exists(f"/proc/{process.pid}/stat"), f"{process.name} is a zombie")
        for port in self.ports:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError as error:
                    self.test.fail(f"port {port} is still taken: {error}")
        known = {"out", "go"} | {path.name for path in self.folder.glob("*.toml")}
        left = {path.name for path in self.folder.iterdir()} - known
        self.test.assertFalse(left, "files were left")

    def clean_up(self):
        for process in self.processes.values():
            process.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def digest(test, reports):
    """The one digest of all workers."""
    digests = {report["digest"] for report in reports}
    test.assertEqual(len(digests), 1, reports)
    return digests.pop()


def run(test, **options):
    """Starts, waits, and returns the reports."""
    return Cluster(test, **options).start().finish()
