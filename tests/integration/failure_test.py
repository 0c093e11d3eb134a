"""A process that dies or fails while the job runs ends everybody, with who and why: S01, S02, S10, S11, S18."""

import signal
import threading
import time
import unittest

from tests.integration.support.cluster import PLAN, Cluster, digest, run

HEARTBEAT_TIMEOUT = 2
# After the heartbeat timeout, on a busy machine.
GRACE = 8
ENDLESS = {**PLAN, "steps": [1000000], "step_ms": 2}


def quick(mode):
    flags = {"cluster.heartbeat_timeout": HEARTBEAT_TIMEOUT}
    return {**flags, "cluster.collective_timeout": 4} if mode == "allreduce" else flags


class LossTest(unittest.TestCase):
    def lose(self, mode, victim, words, how=signal.SIGKILL, workers=2):
        cluster = Cluster(self, mode=mode, plan=ENDLESS, flags=quick(mode), workers=workers).start().wait_training()
        cluster[victim].send(how)
        if how == signal.SIGKILL:
            self.assertEqual(cluster.forget(victim).wait(), -signal.SIGKILL)
        else:
            self.addCleanup(cluster.processes.pop(victim).end)  # stopped, so not waited for
        for name, error in cluster.fail(within=HEARTBEAT_TIMEOUT + GRACE).items():
            for word in words:
                self.assertIn(word, error, name)

    def test_a_killed_worker(self):
        for mode in ("bsp", "ssp", "asp"):
            with self.subTest(mode=mode):
                self.lose(mode, "worker 1", ["worker 1", "is lost"])

    def test_a_killed_worker_in_an_all_reduce(self):
        flags = quick("allreduce")
        cluster = Cluster(self, mode="allreduce", plan=ENDLESS, flags=flags, workers=3).start().wait_training()
        cluster["worker 1"].send(signal.SIGKILL)
        cluster.forget("worker 1")
        for name, error in cluster.fail(within=HEARTBEAT_TIMEOUT + GRACE).items():
            self.assertRegex(error, "worker 1|all-reduce|worker [02]:", name)

    def test_the_only_worker_is_killed(self):
        self.lose("bsp", "worker 0", ["worker 0", "is lost"], workers=1)

    def test_a_killed_server(self):
        for mode in ("bsp", "asp"):
            with self.subTest(mode=mode):
                self.lose(mode, "server 1", ["server 1", "is lost"])

    def test_a_killed_coordinator(self):
        for mode in ("bsp", "allreduce"):
            with self.subTest(mode=mode):
                self.lose(mode, "server 0", ["server 0", "lost"])

    def test_a_silent_worker(self):
        self.lose("bsp", "worker 1", ["worker 1", f"silent for {HEARTBEAT_TIMEOUT:.1f} s"], how=signal.SIGSTOP)

    def test_a_silent_coordinator(self):
        self.lose("bsp", "server 0", ["server 0", f"silent for {HEARTBEAT_TIMEOUT:.1f} s"], how=signal.SIGSTOP)


class TerminationTest(unittest.TestCase):
    def test_one_signal_ends_everybody(self):
        for victim in ("worker 1", "server 1", "server 0"):
            for number, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")):
                if victim != "worker 1" and number == signal.SIGINT:
                    continue
                with self.subTest(victim=victim, signal=name):
                    cluster = Cluster(self, plan=ENDLESS, flags=quick("bsp")).start().wait_training()
                    since = time.monotonic()
                    cluster[victim].send(number)
                    self.assertEqual(cluster[victim].wait(10), 128 + number, cluster.tails())
                    self.assertLess(time.monotonic() - since, 4)
                    cluster.forget(victim)
                    for error in cluster.fail(within=HEARTBEAT_TIMEOUT + GRACE).values():
                        self.assertIn(f"{victim}: ended by {name}", error)


class NonFiniteTest(unittest.TestCase):
    def test_a_gradient_that_is_not_a_number_stops_everybody(self):
        for mode in ("bsp", "ssp", "asp", "allreduce"):
            with self.subTest(mode=mode):
                plan = {**ENDLESS, "nan": {"rank": 1, "clock": 7, "tensor": "second.weight"}}
                cluster = Cluster(self, mode=mode, plan=plan, flags=quick(mode)).start()
                for name, error in cluster.fail(within=HEARTBEAT_TIMEOUT + GRACE + 10).items():
                    self.assertRegex(error, "(worker|rank) 1", name)
                    self.assertIn("clock 7", error, name)
                    self.assertIn("'second.weight'", error, name)

    def test_without_a_network_too(self):
        plan = {**ENDLESS, "nan": {"rank": 0, "clock": 3, "tensor": "first.weight"}}
        error = Cluster(self, mode="none", plan=plan).start().fail()["worker 0"]
        for word in ("rank 0", "clock 3", "'first.weight'"):
            self.assertIn(word, error)


class HarmlessSignalTest(unittest.TestCase):
    """Signals that mean nothing to us, and pauses shorter than the heartbeat timeout, change nothing."""

    def test_a_storm_of_signals(self):
        for mode, steps in (("bsp", 100), ("allreduce", 30)):
            with self.subTest(mode=mode):
                plan = {**PLAN, "steps": [steps], "step_ms": 300 / steps}
                undisturbed = digest(self, run(self, mode=mode, plan=plan))
                cluster = Cluster(self, mode=mode, plan=plan).start().wait_training()
                calm = threading.Event()
                storm = threading.Thread(target=self.disturb, args=(cluster, calm))
                storm.start()
                try:
                    for worker in cluster.of("worker"):
                        worker.wait()
                finally:
                    calm.set()
                    storm.join()
                self.assertEqual(digest(self, cluster.finish()), undisturbed)

    @staticmethod
    def disturb(cluster, calm):
        storm = (signal.SIGWINCH, signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGCONT)
        while not calm.wait(0.02):
            for number in storm:
                for process in cluster.processes.values():
                    process.send(number)


if __name__ == "__main__":
    unittest.main()
