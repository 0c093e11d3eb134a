"""Every sync mode from start to end, and what the digest must not depend on.

Field cases S03, S04, S09, S16, S21, S27 and the digest table of docs/design.md, with fake workers.
"""

import unittest

from tests.integration.support.cluster import PLAN, Cluster, digest, free_port, run

GROUP_MODES = ("bsp", "ssp", "asp", "allreduce")
SERVER_MODES = ("bsp", "ssp", "asp")


class EndTest(unittest.TestCase):
    def test_each_mode_ends_everywhere_with_status_0(self):
        for mode in (*GROUP_MODES, "none"):
            with self.subTest(mode=mode):
                reports = run(self, mode=mode)
                self.assertEqual([report["clock"] for report in reports], [20] * (1 if mode == "none" else 2))
                digest(self, reports)

    def test_the_same_ports_work_again_at_once(self):
        coordinator, data = free_port(), free_port() + 100
        digests = set()
        for _ in range(3):
            cluster = Cluster(self, servers=1, coordinator=f"127.0.0.1:{coordinator}",
                              flags={"cluster.data_port": data})
            reports = cluster.start().finish()
            self.assertLessEqual({coordinator, data}, cluster.ports)
            digests.add(digest(self, reports))
        self.assertEqual(len(digests), 1)

    def test_workers_first_and_ranks_handed_out(self):
        cluster = Cluster(self, servers=1, coordinator=f"127.0.0.1:{free_port()}")
        for number in range(2):
            cluster.start_worker(None, name=f"worker {number}").wait_line("waiting for the coordinator")
        cluster.start_servers()
        self.assertEqual([report["rank"] for report in cluster.finish()], [0, 1])

    def test_uneven_data_holds_nobody_up(self):
        for mode in GROUP_MODES:
            with self.subTest(mode=mode):
                reports = run(self, mode=mode, workers=3, plan={**PLAN, "steps": [12, 5, 9], "samples": [8, 7, 1]})
                digest(self, reports)
                self.assertEqual([report["steps"] for report in reports], [12, 5, 9])

    def test_a_worker_without_any_data(self):
        for mode in GROUP_MODES:
            with self.subTest(mode=mode):
                reports = run(self, mode=mode, workers=2, plan={**PLAN, "steps": [6, 0]})
                self.assertEqual([report["steps"] for report in reports], [6, 0])
                digest(self, reports)

    def test_nobody_has_data(self):
        initial = digest(self, run(self, mode="none", plan={**PLAN, "steps": [0]}))
        for mode in GROUP_MODES:
            with self.subTest(mode=mode):
                self.assertEqual(digest(self, run(self, mode=mode, plan={**PLAN, "steps": [0]})), initial)

    def test_rank_0_asks_for_a_stop(self):
        for mode in GROUP_MODES:
            with self.subTest(mode=mode):
                reports = run(self, mode=mode, plan={**PLAN, "steps": [100000], "stop_at": 10, "step_ms": 1})
                digest(self, reports)
                self.assertTrue(all(report["stopped"] for report in reports), reports)
                if mode in ("bsp", "allreduce"):
                    self.assertEqual([report["steps"] for report in reports], [10, 10])


class DigestTest(unittest.TestCase):
    def test_bsp_does_not_depend_on_servers_and_shards(self):
        for workers in (2, 3):
            plan = {**PLAN, "samples": [8, 5, 3]}
            found = {}
            for servers, shards in ((1, 1), (2, 1), (3, 1), (5, 1), (1, 3), (2, 3), (2, 1)):
                flags = {"server.shards": shards, "optimizer.momentum": 0.9, "optimizer.weight_decay": 0.01}
                reports = run(self, servers=servers, workers=workers, flags=flags, plan=plan)
                found[servers, shards] = digest(self, reports)
            self.assertEqual(len(set(found.values())), 1, found)

    def test_bsp_equals_allreduce_with_two_workers(self):
        for optimizer in ("sgd", "adam"):
            for samples in ([8], [8, 5]):
                found = {}
                for mode in ("bsp", "allreduce"):
                    plan = {**PLAN, "samples": samples}
                    found[mode] = digest(self, run(self, mode=mode, plan=plan, flags={"optimizer.name": optimizer}))
                self.assertEqual(found["bsp"], found["allreduce"], (optimizer, samples))

    def test_one_worker_equals_none(self):
        flags = {"optimizer.momentum": 0.9}
        alone = digest(self, run(self, mode="none", workers=1, flags=flags))
        for mode in ("bsp", "asp", "allreduce"):
            with self.subTest(mode=mode):
                self.assertEqual(digest(self, run(self, mode=mode, workers=1, flags=flags)), alone)


class ShapeTest(unittest.TestCase):
    def test_more_servers_than_parameters(self):
        plan = {"steps": [10], "tensor": [{"name": "w", "shape": [3], "initial": "hash"}]}
        reference = {mode: digest(self, run(self, mode=mode, servers=1, plan=plan)) for mode in ("bsp", "allreduce")}
        for mode in SERVER_MODES:
            with self.subTest(mode=mode):
                found = digest(self, run(self, mode=mode, servers=8, plan=plan))
                if mode == "bsp":
                    self.assertEqual({found}, set(reference.values()))

    def test_empty_and_0_dim_tensors(self):
        odd = [
            {"name": "empty", "shape": [0]},
            {"name": "hollow", "shape": [3, 0, 2], "group": 1},
            {"name": "scalar", "shape": [], "initial": 0.5},
            {"name": "single", "shape": [1], "initial": "hash"},
            {"name": "untouched", "shape": [7], "initial": "hash", "absent_ranks": [0, 1]},
            {"name": "sometimes", "shape": [5], "initial": "hash", "absent_ranks": [1], "absent_clocks": [2, 3]},
            {"name": "rarely", "shape": [300], "initial": "hash", "absent_clocks": [1, 4, 5]},
            {"name": "running", "shape": [4], "kind": "buffer", "initial": 1.0},
        ]
        flags = {"optimizer.name": "adam"}
        for workers in (1, 2):
            found = {}
            for mode in (*GROUP_MODES, "none"):
                if mode == "none" and workers > 1:
                    continue
                plan = {"steps": [8], "tensor": odd}
                reports = run(self, mode=mode, workers=workers, plan=plan, flags=flags)
                found[mode] = digest(self, reports)
                start = run(self, mode="none", workers=1, plan={**plan, "steps": [0]}, flags=flags)[0]["values"]
                self.assertEqual(reports[0]["values"]["untouched"], start["untouched"], mode)
                self.assertNotEqual(reports[0]["values"]["rarely"], start["rarely"], mode)
                self.assertEqual(reports[0]["values"]["empty"], [])
            same = found if workers == 1 else {mode: found[mode] for mode in ("bsp", "allreduce")}
            self.assertEqual(len(set(same.values())), 1, found)

    def test_only_empty_tensors(self):
        plan = {"steps": [3], "tensor": [{"name": "empty", "shape": [0]}]}
        for mode in (*GROUP_MODES, "none"):
            with self.subTest(mode=mode):
                digest(self, run(self, mode=mode, plan=plan))

    def test_20000_named_parameters(self):
        plan = {"steps": [3], "tensor": [{"name": "table", "shape": [2], "repeat": 20000, "initial": "hash"}]}
        flags = {"server.slice_bytes": 65536}
        found = {mode: digest(self, run(self, mode=mode, plan=plan, flags=flags)) for mode in ("bsp", "allreduce")}
        self.assertEqual(found["bsp"], found["allreduce"])


class ScheduleTest(unittest.TestCase):
    """With a gradient of 1 everywhere, weights are minus the sum of the rates."""

    def expect(self, mode, workers, steps, rates):
        plan = {"steps": [steps], "gradient": "constant", "tensor": [{"name": "w", "shape": [5]}]}
        flags = {"optimizer.learning_rate": 0.1, "optimizer.schedule": "step", "optimizer.step_every": 20,
                 "optimizer.step_gamma": 0.1, "optimizer.warmup_steps": 10}
        for report in run(self, mode=mode, workers=workers, plan=plan, flags=flags):
            for value in report["values"]["w"]:
                self.assertAlmostEqual(value, -rates, delta=1e-5)

    def test_step_and_warm_up_equal_the_closed_form(self):
        steps = 50
        rates = sum(self.rate(clock) for clock in range(steps))
        for mode in ("bsp", "asp"):
            for workers in (1, 3):
                with self.subTest(mode=mode, workers=workers):
                    # asp applies every push with the pusher's rate divided by the number of workers: the same sum.
                    self.expect(mode, workers, steps, rates)

    @staticmethod
    def rate(clock):
        if clock < 10:
            return 0.1 * (clock + 1) / 10
        return 0.1 * 0.1 ** ((clock - 10) // 20)  # counted from the end of the warm-up


if __name__ == "__main__":
    unittest.main()
