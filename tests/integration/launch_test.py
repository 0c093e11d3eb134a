"""The launcher with the real programs: every mode, port trouble, signals and kills, and nothing left behind.

Each job is a small network on a small data set that the test makes, so it takes a second or two.
"""

import contextlib
import json
import os
import pathlib
import random
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["BUILD_DIR"])
RUN_SECONDS = 120.0

CONFIG = """
[model]
type = "mlp"
hidden = [32]

[data]
dir = "{data}"

[train]
epochs = {epochs}
batch_size = 16

[launch]
grace_seconds = 5
"""
FOREVER = 1_000_000


def write_digits(folder, train=96, test=32):
    """Noise with labels, as IDX files."""
    source = random.Random(1)
    for part, count in (("train", train), ("t10k", test)):
        images = b"".join(n.to_bytes(4, "big") for n in (0x803, count, 28, 28)) + source.randbytes(count * 784)
        labels = b"".join(n.to_bytes(4, "big") for n in (0x801, count)) + bytes(i % 10 for i in range(count))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(images)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels)


class LaunchTest(unittest.TestCase):
    def setUp(self):
        self.stack = self.enterContext(contextlib.ExitStack())
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="parley-launch-")))
        self.output = self.folder / "out"
        write_digits(self.folder)

    def command(self, *flags, epochs=2):
        config = self.folder / "job.toml"
        config.write_text(CONFIG.format(data=self.folder, epochs=epochs), encoding="utf-8")
        return [sys.executable, str(ROOT / "scripts" / "launch.py"), str(config), "--build-dir", str(BUILD),
                "--output-dir", str(self.output), *flags]

    def run_job(self, *flags, **options):
        return subprocess.run(self.command(*flags, **options), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=RUN_SECONDS, cwd=self.folder, check=False)

    def start_endless(self, *flags):
        """A launcher whose job trains, and by name the pid and pidfd of each of its processes."""
        (self.output / "metrics.jsonl").unlink(missing_ok=True)  # of an earlier one
        launcher = self.stack.enter_context(subprocess.Popen(
            self.command(*flags, epochs=FOREVER), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd=self.folder))
        self.stack.callback(launcher.kill)
        self.wait_for_steps()
        children = pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
        found = {}
        for pid in map(int, children):
            arguments = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            role = pathlib.Path(arguments[0]).name.removeprefix("parley-")
            pidfd = os.pidfd_open(pid)
            self.stack.callback(os.close, pidfd)
            found[f"{role} {arguments[arguments.index('--rank') + 1]}"] = (pid, pidfd)
        return launcher, found

    def wait_for_steps(self):
        """Until both workers have written a step."""
        metrics = self.output / "metrics.jsonl"
        poll = select.poll()
        for _ in range(int(RUN_SECONDS * 10)):
            text = metrics.read_text(encoding="utf-8") if metrics.exists() else ""
            if '"rank":0' in text and '"rank":1' in text:
                return
            poll.poll(100)
        self.fail("no steps were written")

    def assert_gone(self, processes, seconds=10):
        for name, (_, pidfd) in processes.items():
            self.assertTrue(select.select([pidfd], [], [], seconds)[0], f"{name} lives on")

    def finish(self, launcher, seconds=30):
        output, _ = launcher.communicate(timeout=seconds)
        return launcher.returncode, output

    def report(self):
        return json.loads((self.output / "report.json").read_text(encoding="utf-8"))

    # Good runs

    def test_every_mode_ends_well_and_with_one_table(self):
        cases = {"bsp": 4, "ssp": 4, "asp": 4, "allreduce": 3, "none": 1}
        for mode, processes in cases.items():
            with self.subTest(mode):
                run = self.run_job("--sync.mode", mode)
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                self.assertEqual(run.stderr, "")
                self.assertEqual(run.stdout.count("weights digest"), 1)
                self.assertIn(f"\nweights digest        {self.report()['weights_digest']}\n", run.stdout)
                self.assertEqual((self.report()["mode"], self.report()["events"]), (mode, []))
                self.assertEqual(len(list((self.output / "logs").iterdir())), processes)
                self.assertGreater(len((self.output / "metrics.jsonl").read_text().splitlines()), 0)

    def test_runs_follow_each_other_on_the_same_ports(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        digests = set()
        for _ in range(5):
            run = self.run_job("--cluster.coordinator", f"127.0.0.1:{port}", epochs=1)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            digests.add(self.report()["weights_digest"])
        self.assertEqual(len(digests), 1)

    def test_no_epochs(self):
        run = self.run_job(epochs=0)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(self.report()["steps"], 0)

    def test_a_dry_run_shows_what_each_server_would_hold(self):
        run = self.run_job("--dry-run", "--cluster.servers", "3")
        self.assertEqual(run.returncode, 0, run.stderr)
        held = re.findall(r"^\d +[\d.]+ (?:KiB|B) +\d+ +[\d.]+ (?:KiB|B)$", run.stdout, re.M)
        self.assertEqual(len(held), 3, run.stdout)
        self.assertEqual(len(re.findall(r"^(?:server|worker) \d \| ", run.stdout, re.M)), 5)
        self.assertFalse(self.output.exists())

    # Faults of the user's

    def test_degenerate_counts_are_faults_that_name_the_key(self):
        for flag, value in (("cluster.workers", "0"), ("cluster.servers", "0"), ("train.batch_size", "0"),
                            ("train.batch_size", "-1"), ("sync.modus", "bsp")):
            run = self.run_job(f"--{flag}", value)
            self.assertEqual(run.returncode, 2, flag)
            self.assertRegex(run.stderr, f"^run: .*--{flag}")
            self.assertEqual(run.stderr.count("\n"), 1)
        self.assertFalse(self.output.exists())

    def test_a_coordinators_port_in_use_ends_the_job_in_seconds(self):
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            run = self.run_job("--cluster.coordinator", f"127.0.0.1:{port}")
        self.assertEqual(run.returncode, 1, run.stdout)
        expected = f"^run: failed: server 0 ended with status 1: .*127.0.0.1:{port}.*: Address already in use"
        self.assertRegex(run.stderr, expected)

    def test_a_shards_port_in_use_ends_the_job_too(self):
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            run = self.run_job("--cluster.data_port", str(port), "--cluster.servers", "1")
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn(f":{port}", run.stderr)
        self.assertIn("Address already in use", run.stderr)

    def test_a_bind_address_that_is_not_of_this_host(self):
        run = self.run_job("--cluster.bind", "192.0.2.1", "--insecure")
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("192.0.2.1", run.stderr)
        self.assertIn("Cannot assign requested address", run.stderr)

    def test_other_addresses_need_insecure(self):
        run = self.run_job("--cluster.bind", "0.0.0.0")
        self.assertEqual(run.returncode, 2, run.stdout)
        self.assertIn("--insecure", run.stderr)

    def test_missing_data_names_the_file(self):
        (self.folder / "train-labels-idx1-ubyte").unlink()
        run = self.run_job()
        self.assertEqual(run.returncode, 2, run.stdout)
        self.assertRegex(run.stderr, "run: failed: worker [01] ended with status 2: .*train-labels")

    # Deaths

    def test_a_worker_or_server_that_dies_ends_the_job_and_is_named(self):
        for victim in ("worker 1", "server 1", "server 0"):
            with self.subTest(victim):
                launcher, processes = self.start_endless()
                signal.pidfd_send_signal(processes[victim][1], signal.SIGKILL)
                status, output = self.finish(launcher)
                self.assertEqual(status, 128 + signal.SIGKILL, output)
                self.assertIn(f"run: failed: {victim} was killed by SIGKILL", output)
                self.assert_gone(processes, 0)
                events = self.report()["events"]
                self.assertEqual(events[0]["what"].partition(":")[0], f"{victim} was killed by SIGKILL")

    def test_a_member_that_gets_sigterm_ends_the_job(self):
        for victim in ("worker 1", "server 1"):
            with self.subTest(victim):
                launcher, processes = self.start_endless()
                signal.pidfd_send_signal(processes[victim][1], signal.SIGTERM)
                status, output = self.finish(launcher)
                self.assertNotEqual(status, 0)
                self.assertRegex(output, f"run: failed: .*({victim}.*SIGTERM|{victim} ended with status 143)")
                self.assert_gone(processes, 0)

    def test_signals_to_the_launcher_end_every_process(self):
        for mode in ("bsp", "allreduce"):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(mode=mode, number=number):
                    launcher, processes = self.start_endless("--sync.mode", mode)
                    launcher.send_signal(number)
                    status, output = self.finish(launcher)
                    self.assertEqual(status, 128 + number, output)
                    self.assert_gone(processes, 0)
                    self.assertEqual([event["what"] for event in self.report()["events"]],
                                     [f"interrupted by {number.name}"])

    def test_a_stopped_process_does_not_keep_the_job(self):
        launcher, processes = self.start_endless("--launch.grace_seconds", "0.5")
        signal.pidfd_send_signal(processes["worker 1"][1], signal.SIGSTOP)
        launcher.send_signal(signal.SIGINT)
        status, output = self.finish(launcher)
        self.assertEqual(status, 130, output)
        self.assert_gone(processes, 0)

    def test_a_killed_launcher_leaves_no_process(self):
        launcher, processes = self.start_endless()
        self.assertEqual(len(processes), 4)
        launcher.kill()
        self.assert_gone(processes)
        launcher.communicate()


if __name__ == "__main__":
    if not os.environ.get("PARLEY_WORKER"):
        print("skipped: parley-worker was not built (it needs LibTorch)")
        sys.exit(77)
    unittest.main()
