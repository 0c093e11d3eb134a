"""The launcher with programs that do as they are told: what is shown and kept, and what a failure comes to."""

import contextlib
import json
import os
import signal
import sys
import unittest

sys.path.insert(0, os.environ["SOURCE_DIR"])

from tests.support import launcher_fakes  # noqa: E402
from tests.support.launcher_fakes import EVERYONE, page  # noqa: E402

REPORT = {"mode": "bsp", "steps": 7, "test_accuracy": 0.97, "weights_digest": "abcd", "events": []}


class LauncherTest(unittest.TestCase):
    def setUp(self):
        self.stack = self.enterContext(contextlib.ExitStack())
        self.fakes = launcher_fakes.Fakes(self.stack)

    # A good run

    def test_a_good_run_ends_with_the_table_of_the_report(self):
        run = self.fakes.run({"worker 0": [["write", "hello\n"], ["report", REPORT]]})
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("worker 0 | hello\n", run.stdout)
        self.assertIn("test accuracy         97.00 %\n", run.stdout)
        self.assertIn("weights digest        abcd\n", run.stdout)
        self.assertIn(f"results in {self.fakes.output}", run.stdout)
        self.assertEqual(self.fakes.report(), REPORT)
        logs = sorted(path.name for path in (self.fakes.output / "logs").iterdir())
        self.assertEqual(logs, ["server-0.log", "server-1.log", "worker-0.log", "worker-1.log"])

    def test_everybody_gets_the_same_flags_but_for_its_own(self):
        steps = {name: [["arguments"]] for name in EVERYONE}
        flags = ("--sync.mode", "ssp", "--cluster.coordinator=127.0.0.1:0", "--device", "cpu", "--insecure")
        run = self.fakes.run(steps, *flags)
        self.assertEqual(run.returncode, 0, run.stderr)
        given = {line.split(" | ")[0]: json.loads(line.split(" | ")[1])
                 for line in run.stdout.splitlines() if " | [" in line}
        self.assertEqual(set(given), set(EVERYONE))

        def option(name, flag):
            self.assertEqual(given[name].count(flag), 1, (name, flag))
            return given[name][given[name].index(flag) + 1]

        for flag in ("--config", "--sync.mode", "--worker.device", "--cluster.coordinator", "--cluster.job"):
            self.assertEqual(len({option(name, flag) for name in EVERYONE}), 1, flag)
        self.assertNotEqual(option("server 0", "--cluster.data_port"), option("server 1", "--cluster.data_port"))
        self.assertNotEqual(option("server 0", "--cluster.coordinator"), "127.0.0.1:0")
        self.assertTrue(all("--insecure" in arguments for arguments in given.values()))
        self.assertEqual(option("worker 1", "--output-dir"), str(self.fakes.output))
        self.assertEqual([name for name in EVERYONE if "--progress-fd" in given[name]], ["worker 0"])

    def test_a_warning_of_the_config_is_shown_once(self):
        warning = "job.toml: sync.staleness has no effect"
        line = f"W20260101 12:00:00.000001 77 program.cc:40] {{}}: {warning}\n"
        steps = {name: [["write", line.format(name)]] for name in EVERYONE}
        run = self.fakes.run(steps, page=page(warning=warning))
        self.assertEqual(run.stdout.count(warning), 1)
        self.assertIn(warning.encode(), self.fakes.log("worker 1"))

    def test_a_second_run_replaces_the_results_of_the_first(self):
        self.fakes.run({"worker 0": [["report", REPORT]]})
        (self.fakes.output / "metrics.jsonl").write_text("{}\n")
        run = self.fakes.run({})
        self.assertEqual(run.returncode, 0)
        self.assertNotIn("abcd", run.stdout)
        self.assertEqual(sorted(path.name for path in self.fakes.output.iterdir()), ["logs"])

    # Output of any kind

    def test_binary_and_endless_lines_are_logged_whole_and_shown_safely(self):
        binary = "\x1b[31mred\x00\xff\n" + "x" * 100_000 + "\n" + "no newline at the end"
        run = self.fakes.run({"worker 1": [["write", binary]]})
        self.assertEqual(self.fakes.log("worker 1"), binary.encode("latin-1"))
        self.assertIn("worker 1 | \\x1b[31mred\\x00\\xff\n", run.stdout)
        self.assertIn(" … (98000 more bytes)\n", run.stdout)
        self.assertIn("worker 1 | no newline at the end\n", run.stdout)

    def test_what_a_process_says_last_is_not_lost_and_its_children_are_not_waited_for(self):
        run = self.fakes.run({"worker 1": [["grandchild"], ["write", "y\n", 200_000]]})
        grandchild = int(next(line for line in run.stdout.splitlines() if "grandchild" in line).split()[-1])
        os.kill(grandchild, signal.SIGKILL)
        self.assertEqual(run.returncode, 0)
        self.assertEqual(run.stdout.count("worker 1 | y\n"), 200_000)

    # Failures

    def test_the_first_failure_gives_status_and_message(self):
        steps = {"worker 1": [["error", "the data is missing"], ["write", "bye\n"], ["exit", 3]],
                 "worker 0": [["wait"]], "server 0": [["wait"]], "server 1": [["wait"]]}
        run = self.fakes.run(steps)
        self.assertEqual(run.returncode, 3)
        self.assertIn("run: failed: worker 1 ended with status 3: the data is missing\n", run.stderr)
        for name in ("server 0", "server 1", "worker 0"):
            self.assertIn(b"had SIGTERM", self.fakes.log(name))
        report = self.fakes.report()
        self.assertEqual((report["mode"], report["exit_status"]), ("bsp", 3))
        self.assertEqual([event["what"] for event in report["events"]],
                         ["worker 1 ended with status 3: the data is missing"])

    def test_events_are_added_to_a_report_that_is_there(self):
        run = self.fakes.run({"worker 0": [["report", REPORT]], "server 1": [["raise", int(signal.SIGSEGV)]]})
        self.assertEqual(run.returncode, 128 + signal.SIGSEGV)
        self.assertIn("server 1 was killed by SIGSEGV", run.stderr)
        report = self.fakes.report()
        self.assertEqual((report["steps"], len(report["events"])), (7, 1))

    def test_a_fault_of_the_config_is_the_programs_own_word(self):
        run = self.fakes.run({}, "--bad.key", "1")
        self.assertEqual(run.returncode, 2)
        self.assertEqual(run.stderr, "run: unknown flag --bad.key; did you mean it?\n")
        self.assertFalse(self.fakes.output.exists())

    def test_a_program_that_cannot_be_started(self):
        (self.fakes.folder / "server" / "parley-server").unlink()
        run = self.fakes.run({})
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"server 0: .*parley-server cannot be started: No such file")

    def test_a_port_that_is_taken_in_between_is_replaced_by_another(self):
        # The fake complains about the port that it was given, in its first life only.
        script = self.fakes.folder / "server" / "parley-server"
        text = script.read_text()
        mark = self.fakes.folder / "mark"
        script.write_text(text + f'''
if name == "server 0" and not os.path.exists({str(mark)!r}):
    open({str(mark)!r}, "w").close()
    step("error", f"cannot listen on {{option('--cluster.coordinator')}}: Address already in use")
    sys.exit(1)
''')
        run = self.fakes.run({"worker 0": [["report", REPORT]]})
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("run: another program took a port in between", run.stdout)
        self.assertEqual(self.fakes.report(), REPORT)

    def test_a_configured_port_in_use_is_an_error_at_once(self):
        taken = "cannot listen on 127.0.0.1:7070: Address already in use"
        steps = {"server 0": [["error", taken], ["exit", 1]]}
        run = self.fakes.run(steps, page=page(cluster__coordinator="127.0.0.1:7070"))
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr, f"run: failed: server 0 ended with status 1: {taken}\n")

    # Without a job

    def test_a_dry_run_starts_and_writes_nothing(self):
        run = self.fakes.run({name: [["write", "started\n"]] for name in EVERYONE}, "--dry-run")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("server      parameters  slices      memory\n"
                      "0              4.0 KiB       3     3.0 MiB\n", run.stdout)
        self.assertIn("skew 1.250", run.stdout)
        self.assertRegex(run.stdout, r"\nworker 1 \| \S+/parley-worker --config \S+job.toml .*--rank 1 ")
        self.assertFalse(self.fakes.output.exists())

    def test_pages_of_the_programs_pass_through(self):
        run = self.fakes.run({}, "--print-config")
        self.assertEqual((run.returncode, run.stdout), (0, "{}\n"))


if __name__ == "__main__":
    unittest.main()
