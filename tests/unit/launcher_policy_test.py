"""Who is told to end, and when: the launcher's policy on a clock that the test holds."""

import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["SOURCE_DIR"]) / "scripts" / "lib"))

from launcher.policy import Limits, Member, Policy, Stage  # noqa: E402

LIMITS = Limits(grace=10, settle=3, close=30, kill=5)
EVERYONE = (Member("server 0", False, True), Member("server 1", False), Member("worker 0", True),
            Member("worker 1", True))


class PolicyTest(unittest.TestCase):
    def setUp(self):
        self.policy = Policy(EVERYONE, LIMITS, now=100)

    def end(self, now, *names, returncode=0, error=""):
        for name in names:
            self.policy.exited(name, returncode, error, now)

    def what(self):
        return [event.what for event in self.policy.events]

    def test_a_running_job_has_no_limit(self):
        self.assertIsNone(self.policy.deadline)
        self.assertIsNone(self.policy.order(1e9))

    def test_a_good_end(self):
        self.end(150, "worker 1", "worker 0", "server 0")
        self.assertFalse(self.policy.over)
        self.end(151, "server 1")
        self.assertTrue(self.policy.over)
        self.assertEqual((self.policy.exit_status, self.what()), (0, []))

    def test_a_worker_may_end_long_before_the_others(self):
        self.end(110, "worker 1")
        self.assertIsNone(self.policy.deadline)

    def test_the_rest_of_an_ended_job_has_a_limit(self):
        for first in (("worker 0", "worker 1"), ("server 0",)):
            with self.subTest(first):
                self.setUp()
                self.end(110, *first)
                self.assertEqual((self.policy.stage, self.policy.deadline), (Stage.CLOSING, 140))
                self.end(120, "server 1")
                self.assertEqual(self.policy.deadline, 140)
                self.assertIsNone(self.policy.order(139.9))
                self.assertEqual(self.policy.order(140), signal.SIGTERM)
                self.assertEqual(self.policy.exit_status, 1)
                self.assertIn("did not end within 30 s", str(self.policy.failure))

    def test_after_a_failure_the_others_have_time_to_hear_of_it(self):
        self.end(110, "worker 1", returncode=3, error="no data")
        self.assertEqual((self.policy.stage, self.policy.deadline), (Stage.SETTLING, 113))
        self.end(111, "worker 0", returncode=1, error="worker 1 was lost")
        self.assertEqual(self.policy.deadline, 113)
        self.assertEqual(self.policy.order(113), signal.SIGTERM)
        self.assertIsNone(self.policy.order(113))
        self.assertEqual(self.policy.deadline, 123)
        self.end(114, "server 0", "server 1", returncode=143)
        self.assertTrue(self.policy.over)
        self.assertEqual(self.policy.exit_status, 3)
        self.assertEqual(str(self.policy.failure), "worker 1 ended with status 3: no data")
        self.assertEqual(self.what(), ["worker 1 ended with status 3: no data",
                                       "worker 0 ended with status 1: worker 1 was lost"])

    def test_a_failure_while_closing_counts(self):
        self.end(110, "worker 0", "worker 1", "server 0")
        self.end(111, "server 1", returncode=-signal.SIGSEGV)
        self.assertEqual(self.policy.exit_status, 139)

    def test_grace_ends_with_a_kill_and_that_too_has_a_limit(self):
        self.policy.interrupted(signal.SIGTERM, 200)
        self.assertEqual(self.policy.order(200), signal.SIGTERM)
        self.assertIsNone(self.policy.order(209))
        self.assertEqual(self.policy.order(210), signal.SIGKILL)
        self.end(211, "server 0", "server 1", "worker 0", returncode=-signal.SIGKILL)
        self.assertFalse(self.policy.over)
        self.assertIsNone(self.policy.order(215))
        self.assertTrue(self.policy.over)
        self.assertEqual(self.what()[-1], "worker 1 cannot be killed")
        self.assertEqual(self.policy.exit_status, 143)

    def test_what_follows_an_interruption_is_no_failure(self):
        self.policy.interrupted(signal.SIGINT, 200)
        self.policy.order(200)
        self.end(201, "server 0", "worker 0", returncode=143)
        self.end(201, "server 1", returncode=1, error="worker 0 was lost")
        self.end(201, "worker 1")
        self.assertIsNone(self.policy.failure)
        self.assertEqual((self.policy.exit_status, self.what()), (130, ["interrupted by SIGINT"]))

    def test_a_second_signal_kills_at_once_and_a_third_changes_nothing(self):
        self.policy.interrupted(signal.SIGINT, 200)
        self.policy.interrupted(signal.SIGINT, 200.5)
        self.assertEqual(self.policy.order(200.5), signal.SIGKILL)
        self.policy.interrupted(signal.SIGINT, 203)
        self.assertIsNone(self.policy.order(203))
        self.assertEqual(self.policy.deadline, 205.5)

    def test_a_signal_after_a_failure_shortens_the_wait_and_keeps_the_status(self):
        self.end(110, "server 1", returncode=1)
        self.policy.interrupted(signal.SIGINT, 111)
        self.assertEqual(self.policy.order(111), signal.SIGTERM)
        self.assertEqual(self.policy.exit_status, 1)

    def test_no_grace_kills_at_once(self):
        self.policy = Policy(EVERYONE, Limits(grace=0), now=0)
        self.policy.interrupted(signal.SIGTERM, 1)
        self.assertEqual(self.policy.order(1), signal.SIGKILL)

    def test_times_count_from_the_start(self):
        self.end(112.5, "worker 0", returncode=-signal.SIGKILL)
        self.assertEqual(self.policy.events[0].seconds, 12.5)
        self.assertEqual(self.policy.events[0].what, "worker 0 was killed by SIGKILL")


if __name__ == "__main__":
    unittest.main()
