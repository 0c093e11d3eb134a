"""The bound of ssp, measured by the workers on every answer, with one of them ten times slower: field case S29."""

import unittest

from tests.integration.support.cluster import PLAN, Cluster, digest, run

SLOW = {"debug.slow_rank": 1, "debug.slow_factor": 10}


class StalenessTest(unittest.TestCase):
    def test_the_bound_is_kept_and_reached(self):
        for bound in (1, 3):
            with self.subTest(bound=bound):
                plan = {**PLAN, "steps": [20], "step_ms": 3}
                reports = run(self, mode="ssp", plan=plan, flags={"sync.staleness": bound, **SLOW})
                self.assertEqual(max(report["staleness_max"] for report in reports), bound, reports)
                digest(self, reports)

    def test_without_staleness_ssp_is_bsp(self):
        plan = {**PLAN, "steps": [20], "step_ms": 1}
        reports = run(self, mode="ssp", plan=plan, flags={"sync.staleness": 0, **SLOW})
        self.assertEqual(max(report["staleness_max"] for report in reports), 0)
        self.assertEqual(digest(self, reports), digest(self, run(self, mode="bsp", plan={**PLAN, "steps": [20]})))

    def test_asp_knows_no_bound(self):
        plan = {**PLAN, "steps": [60, 6], "step_ms": 3}
        reports = run(self, mode="asp", plan=plan, flags={"debug.slow_rank": 1, "debug.slow_factor": 100})
        self.assertGreater(max(report["staleness_max"] for report in reports), 20, reports)

    def test_who_has_finished_holds_nobody_up(self):
        # The slow one ends after 3 steps of 0.3 s; held to it, the fast one would never get to its 200th.
        plan = {**PLAN, "steps": [200, 3], "step_ms": 2}
        for mode in ("ssp", "bsp"):
            with self.subTest(mode=mode):
                flags = {"debug.slow_rank": 1, "debug.slow_factor": 150}
                if mode == "ssp":
                    flags["sync.staleness"] = 1
                cluster = Cluster(self, mode=mode, plan=plan, flags=flags)
                reports = cluster.start().finish()
                self.assertEqual([report["steps"] for report in reports], [200, 3])
                fast, slow = reports
                # With the slow one's pace for all its steps it would have taken a minute.
                self.assertLess(fast["seconds"], slow["seconds"] + 30)


if __name__ == "__main__":
    unittest.main()
