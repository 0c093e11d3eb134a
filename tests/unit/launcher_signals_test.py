"""The launcher with programs that do as they are told: signals, kills, readers and a terminal."""

import contextlib
import os
import pty
import select
import signal
import sys
import termios
import unittest

sys.path.insert(0, os.environ["SOURCE_DIR"])

from tests.support import launcher_fakes  # noqa: E402
from tests.support.launcher_fakes import EVERYONE, all_gone, page, until, watch  # noqa: E402

REPORT = {"mode": "bsp", "steps": 7}


class SignalsTest(unittest.TestCase):
    def setUp(self):
        self.stack = self.enterContext(contextlib.ExitStack())
        self.fakes = launcher_fakes.Fakes(self.stack)

    def start(self, steps, wait_for=0, part="pid ", **options):
        """A running launcher, and pidfds of `wait_for` processes that have said their pid."""
        launcher = self.stack.enter_context(self.fakes.start(steps, **options))
        self.stack.callback(launcher.kill)
        lines = until(launcher.stdout, wait_for, part) if wait_for else []
        return launcher, watch((int(line.split()[-1]) for line in lines), self.stack)

    def test_a_signal_is_passed_on_once(self):
        waiting = {name: [["pid"], ["wait"]] for name in EVERYONE}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            launcher, processes = self.start(waiting, wait_for=4)
            launcher.send_signal(number)
            output = launcher.stdout.read()
            self.assertEqual(launcher.wait(), 128 + number)
            self.assertTrue(all_gone(processes, 0))
            self.assertIn(f"run: interrupted by {number.name}; every process has ended\n", output)
            self.assertEqual(output.count("had SIGTERM"), 4)
        self.assertEqual(self.fakes.report()["events"][0]["what"], "interrupted by SIGHUP")

    def test_who_does_not_end_in_time_is_killed(self):
        launcher, _ = self.start({"worker 1": [["deaf"]], "worker 0": [["wait"]]}, wait_for=0,
                                 page=page(launch__grace_seconds=0.2))
        until(launcher.stdout, 1, "deaf")
        launcher.send_signal(signal.SIGTERM)
        launcher.stdout.read()
        self.assertEqual(launcher.wait(), 128 + signal.SIGTERM)
        self.assertEqual(self.fakes.report()["events"][-1]["what"], "worker 1 did not end and was killed")

    def test_a_second_signal_kills_at_once(self):
        launcher, _ = self.start({"worker 1": [["deaf"]]}, page=page(launch__grace_seconds=1000))
        until(launcher.stdout, 1, "deaf")
        launcher.send_signal(signal.SIGINT)
        until(launcher.stdout, 1, "once more kills")
        launcher.send_signal(signal.SIGINT)
        launcher.stdout.read()
        self.assertEqual(launcher.wait(), 128 + signal.SIGINT)

    def test_a_launcher_that_is_killed_leaves_no_process(self):
        steps = {name: [["pid"], ["deaf"]] for name in EVERYONE}
        launcher, processes = self.start(steps, wait_for=4)
        launcher.kill()
        self.assertTrue(all_gone(processes))

    # Readers and neighbours

    def test_a_folder_in_use_is_refused(self):
        self.start({"worker 0": [["pid"], ["wait"]], "server 0": [["wait"]]}, wait_for=1)
        run = self.fakes.run({})
        self.assertEqual(run.returncode, 2)
        self.assertIn("another run writes its results there", run.stderr)

    def test_a_reader_that_goes_does_not_end_the_job(self):
        launcher, _ = self.start({"worker 0": [["pid"], ["write", "z\n", 100_000], ["report", REPORT]]}, wait_for=1)
        launcher.stdout.close()
        self.assertEqual(launcher.wait(launcher_fakes.WAIT_SECONDS), 0)
        self.assertEqual(self.fakes.report(), REPORT)

    def test_a_reader_that_stalls_holds_up_neither_the_job_nor_its_end(self):
        launcher, processes = self.start({"worker 0": [["pid"], ["write", "s\n", 200_000], ["write", "wrote all\n"],
                                                       ["wait"]]}, wait_for=1)
        log = self.fakes.output / "logs" / "worker-0.log"
        for _ in range(int(launcher_fakes.WAIT_SECONDS / 0.02)):
            if b"wrote all" in log.read_bytes():  # The launcher takes it all, though we read nothing.
                break
            select.select([], [], [], 0.02)
        else:
            self.fail("the launcher waits for its reader")
        launcher.send_signal(signal.SIGTERM)
        self.assertEqual(launcher.wait(launcher_fakes.WAIT_SECONDS), 128 + signal.SIGTERM)
        self.assertTrue(all_gone(processes, 0))

    # On a terminal

    def test_a_terminal_gets_a_bar_and_colours_and_its_control_c_reaches_everyone_once(self):
        progress = '{"clock":30,"total":60,"epoch":1,"loss":0.5,"accuracy":0.25,"samples_per_second":1000}'
        steps = {name: [["write", "ready\n"], ["wait"]] for name in EVERYONE}
        steps["worker 0"][0:0] = [["progress", progress], ["write", "above the bar\n"]]
        environment = self.fakes.environment(steps, TERM="xterm")
        environment.pop("NO_COLOR", None)
        pid, terminal = pty.fork()
        if pid == 0:
            termios.tcsetwinsize(0, (40, 160))
            os.execvpe(sys.executable, self.fakes.command(), environment)
        self.stack.callback(os.close, terminal)
        shown = b""

        def read_until(*parts, ready=0):
            nonlocal shown
            while not all(part in shown for part in parts) or shown.count(b"ready") < ready:
                shown += os.read(terminal, 4096)

        read_until(b"\x1b[32mworker 0 |\x1b[0m above the bar", b"training", b"30/60",
                   b"epoch 2, loss 0.5000, accuracy 25.00 %, 1000 samples/s", ready=4)
        os.write(terminal, b"\x03")
        with contextlib.suppress(OSError):  # How a terminal without processes tells its end.
            read_until(b"no such text")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 130)
        self.assertEqual(shown.count(b"had SIGTERM"), 4)
        self.assertIn(b"interrupted by SIGINT; every process has ended", shown)


if __name__ == "__main__":
    unittest.main()
