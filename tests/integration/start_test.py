"""What keeps a job from starting, and that everybody hears it: field cases S05, S07, S08, S13, S17, S19, S31."""

import os
import resource
import signal
import socket
import subprocess
import time
import unittest

from tests.integration.support.cluster import HOLD, PLAN, Cluster, digest, free_port, program, run


def changed(**changes):
    """PLAN with another last tensor."""
    tensors = PLAN["tensor"]
    return {**PLAN, "tensor": [*tensors[:-1], {**tensors[-1], **changes}]}


class RegistrationTest(unittest.TestCase):
    def test_a_rank_that_lives_is_refused_and_the_first_is_undisturbed(self):
        cluster = Cluster(self).start_servers()
        cluster.start_worker(0)
        cluster["server 0"].wait_line("worker 0 registered")
        second = cluster.start_worker(0, name="second")
        self.assertEqual(second.wait(10), 1)
        self.assertIn("rank 0 already registered", cluster.forget("second").last_error())
        self.assertTrue(cluster["worker 0"].running())
        cluster.start_worker(1)
        alone = digest(self, cluster.finish())
        self.assertEqual(alone, digest(self, run(self)))

    def test_a_rank_is_refused_while_the_job_runs(self):
        cluster = Cluster(self, plan={**PLAN, **HOLD}).start().wait_held()
        second = cluster.start_worker(1, name="second")
        self.assertEqual(second.wait(10), 1)
        self.assertIn("rank 1 already registered", cluster.forget("second").last_error())
        cluster.release().finish()

    def test_one_worker_more_than_the_job_has(self):
        cluster = Cluster(self, plan={**PLAN, **HOLD}).start().wait_held()
        self.assertEqual(cluster.start_worker(None, name="further").wait(10), 1)
        self.assertIn("all 2 workers of this job are registered", cluster.forget("further").last_error())
        cluster.release().finish()

    def test_who_is_missing_is_named(self):
        cluster = Cluster(self, flags={"cluster.start_timeout": 2}).start_servers()
        cluster.start_worker(0)
        for error in cluster.fail(timeout=15).values():
            self.assertIn("worker 1 missing after 2.0 s", error)

    def test_a_worker_that_dies_at_the_start_frees_its_place(self):
        cluster = Cluster(self, flags={"cluster.heartbeat_timeout": 2}).start_servers()
        cluster.start_worker(0, name="first")
        cluster["server 0"].wait_line("worker 0 registered")
        cluster["first"].send(signal.SIGKILL)
        cluster.forget("first")
        cluster["server 0"].wait_line("worker 0 .* is lost: .*; its place is free again")
        for rank in range(2):
            cluster.start_worker(rank)
        cluster.finish()

    def test_another_model_is_named_with_both_shapes_by_everybody(self):
        tensors = PLAN["tensor"]
        plans = {
            "order": ({**PLAN, "tensor": tensors[::-1]}, ["in order", "first.weight", "second.weight"]),
            "extra": ({**PLAN, "tensor": [*tensors, {"name": "extra", "shape": [2, 3]}]}, ["'extra'", "float32[2, 3]"]),
            "shape": (changed(shape=[40, 10]), ["'second.weight'", "float32[10, 40]", "float32[40, 10]"]),
            "group": (changed(group=1), ["'second.weight'", "group 0", "group 1"]),
            "kind": (changed(kind="buffer"), ["'second.weight'", "parameter", "buffer"]),
        }
        for name, (plan, words) in plans.items():
            for mode in ("bsp", "allreduce") if name == "shape" else ("bsp",):
                with self.subTest(name=name, mode=mode):
                    cluster = Cluster(self, mode=mode).start_servers()
                    cluster.start_worker(0)
                    cluster.start_worker(1, plan=plan)
                    for process, error in cluster.fail(within=10).items():
                        for word in [*words, "worker 0", "worker 1"]:
                            self.assertIn(word, error, process)

    def test_another_config_is_named_with_both_values_by_everybody(self):
        cluster = Cluster(self).start_servers()
        cluster.start_worker(0)
        cluster.start_worker(1, flags={"optimizer.learning_rate": 0.5})
        for process, error in cluster.fail(within=10).items():
            for word in ("optimizer.learning_rate", "0.05", "0.5", "server 0", "worker 1"):
                self.assertIn(word, error, process)

    def test_another_job_is_refused(self):
        cluster = Cluster(self, flags={"cluster.start_timeout": 4, "cluster.job": "one"}).start_servers()
        cluster.start_worker(0)
        cluster.start_worker(1, flags={"cluster.job": "two"})
        self.assertEqual(cluster["worker 1"].wait(10), 1)
        self.assertIn("job", cluster.forget("worker 1").last_error())
        cluster.start_worker(1)
        cluster.finish()


class AddressTest(unittest.TestCase):
    def test_a_port_that_is_taken_is_named_and_the_others_end_too(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            cluster = Cluster(self, coordinator=f"127.0.0.1:{port}", flags={"cluster.connect_timeout": 2})
            cluster.start()
            errors = cluster.fail(within=15)
        for word in (f"127.0.0.1:{port}", "Address already in use"):
            self.assertIn(word, errors["server 0"])
        for name in ("server 1", "worker 0", "worker 1"):
            self.assertIn(f"server 0 at 127.0.0.1:{port}) is unreachable", errors[name])

    def test_a_data_port_that_is_taken_is_named_and_the_others_end_too(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            cluster = Cluster(self, flags={"cluster.start_timeout": 4})
            cluster.start_server(0)
            cluster.start_server(1, flags={"cluster.data_port": port})
            for rank in range(2):
                cluster.start_worker(rank)
            errors = cluster.fail(within=15)
        self.assertIn(f"127.0.0.1:{port}: Address already in use", errors["server 1"])
        for name in ("server 0", "worker 0", "worker 1"):
            self.assertIn("server 1 missing", errors[name])

    def refused_to_listen(self, coordinator, *words, extra=()):
        cluster = Cluster(self, servers=1, coordinator=coordinator)
        cluster.start_server(0, extra=extra)
        error = cluster.fail(within=10)["server 0"]
        for word in words:
            self.assertIn(word, error)

    @unittest.skipIf(os.geteuid() == 0, "root may listen on every port")
    def test_a_port_that_is_not_allowed(self):
        self.refused_to_listen("127.0.0.1:80", "127.0.0.1:80", "Permission denied")

    def test_an_address_of_another_host(self):
        self.refused_to_listen("192.0.2.1:7070", "192.0.2.1:7070", "Cannot assign requested address",
                               extra=["--insecure"])

    def test_a_name_that_does_not_resolve(self):
        self.refused_to_listen("no-such-host.invalid:7070", "no-such-host.invalid", extra=["--insecure"])
        cluster = Cluster(self, coordinator="no-such-host.invalid:7070")
        cluster.start_worker(0)
        self.assertIn("no-such-host.invalid", cluster.fail(within=10)["worker 0"])

    def test_names_and_addresses_of_this_host(self):
        hosts = ["localhost", "127.0.0.1"]
        if ipv6_loopback():
            hosts.append("[::1]")
        for host in hosts:
            with self.subTest(host=host):
                cluster = Cluster(self, coordinator=f"{host}:{free_port()}", flags={"cluster.bind": host})
                digest(self, cluster.start().finish())

    def test_the_host_name_and_every_address(self):
        name = socket.gethostname()
        try:
            socket.getaddrinfo(name, None)
        except OSError:
            self.skipTest(f"{name} does not resolve here")
        for mode in ("bsp", "allreduce"):
            for host, bind in ((name, name), (name, "0.0.0.0"), ("127.0.0.1", "0.0.0.0")):
                with self.subTest(mode=mode, host=host, bind=bind):
                    cluster = Cluster(self, mode=mode, coordinator=f"{host}:{free_port()}",
                                      flags={"cluster.bind": bind})
                    for rank in range(cluster.servers):
                        cluster.start_server(rank, extra=["--insecure"])
                    for rank in range(2):
                        cluster.start_worker(rank, extra=["--insecure"])
                    digest(self, cluster.finish())
                    self.assertNotIn("0.0.0.0", "".join(line for line in cluster["server 0"].lines if "shard" in line))


def ipv6_loopback():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


class AbsentTest(unittest.TestCase):
    def test_a_worker_without_a_server(self):
        port = free_port()
        cluster = Cluster(self, coordinator=f"127.0.0.1:{port}", flags={"cluster.connect_timeout": 2})
        cluster.start_worker(0)
        error = cluster.fail(within=6)["worker 0"]
        self.assertIn(f"server 0 at 127.0.0.1:{port}", error)
        self.assertIn("unreachable", error)
        self.assertIn("2.0 s", error)

    def test_a_worker_without_a_server_obeys_ctrl_c(self):
        cluster = Cluster(self, coordinator=f"127.0.0.1:{free_port()}")
        worker = cluster.start_worker(0)
        worker.wait_line("waiting for the coordinator")
        self.interrupted(cluster, worker, signal.SIGINT)

    def test_a_server_alone_obeys_ctrl_c(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            cluster = Cluster(self, servers=1).start_servers()
            self.interrupted(cluster, cluster["server 0"], number)

    def interrupted(self, cluster, process, number):
        since = time.monotonic()
        process.send(number)
        self.assertEqual(process.wait(10), 128 + number, process.tail())
        self.assertLess(time.monotonic() - since, 3)  # 2 s, and some for a busy machine
        cluster.assert_nothing_left()


class LimitTest(unittest.TestCase):
    def test_too_few_open_files_are_named(self):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))

        cluster = Cluster(self, flags={"cluster.connect_timeout": 2})
        cluster.coordinator = f"127.0.0.1:{free_port()}"
        cluster.start_server(0, prepare=few)
        cluster.start_server(1)
        cluster.start_worker(0)
        errors = cluster.fail(within=15)
        for word in ("open files", "ulimit -n", "32"):
            self.assertIn(word, errors["server 0"])

    def test_too_few_open_files_for_a_worker(self):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))

        cluster = Cluster(self, servers=4, flags={"server.shards": 3}).start_servers()
        cluster.start_worker(0)
        cluster.start_worker(1, prepare=few)
        for process, error in cluster.fail(within=20).items():
            self.assertIn("ulimit -n", error, process)


class BadConfigTest(unittest.TestCase):
    """Numbers that make no sense are refused by key, at once, by both programs."""

    def refused(self, variable, arguments, *words):
        since = time.monotonic()
        found = subprocess.run([program(variable), *arguments], capture_output=True, text=True, timeout=30, check=False,
                               env={**os.environ, "FAKE_WORKER_PLAN": "/nonexistent"})
        self.assertEqual(found.returncode, 2, found.stderr)
        self.assertLess(time.monotonic() - since, 5)  # 2 s, and some for a busy machine
        for word in words:
            self.assertIn(word, found.stderr)

    def test_counts(self):
        for key in ("cluster.workers", "cluster.servers", "server.shards", "train.batch_size"):
            for value in ("0", "-1"):
                for variable in ("PARLEY_SERVER", "FAKE_WORKER"):
                    self.refused(variable, [f"--{key}", value], key, value)
        self.refused("PARLEY_SERVER", ["--train.epochs", "-1"], "train.epochs", "-1")

    def test_a_rank_beyond_the_job(self):
        self.refused("PARLEY_SERVER", ["--rank", "2"], "--rank", "2 servers")
        self.refused("FAKE_WORKER", ["--rank", "5"], "--rank", "2 workers")

    def test_a_bind_beyond_this_host_needs_insecure(self):
        for variable in ("PARLEY_SERVER", "FAKE_WORKER"):
            self.refused(variable, ["--cluster.bind", "0.0.0.0", "--rank", "0"],
                         "cluster.bind", "0.0.0.0", "--insecure")
        self.refused("PARLEY_SERVER", ["--cluster.coordinator", "192.0.2.1:7070", "--rank", "0"],
                     "192.0.2.1", "--insecure")

    def test_there_is_nothing_to_serve_without_a_network(self):
        self.refused("PARLEY_SERVER", ["--sync.mode", "none"], "nothing to serve")


class VisitorTest(unittest.TestCase):
    def test_workers_that_come_and_die_leave_no_open_file_behind(self):
        cluster = Cluster(self, servers=1, plan={**PLAN, **HOLD})
        server = cluster.start().wait_held()["server 0"]
        before = server.open_files()
        for number in range(100):
            # Refused, since its rank is taken; every other one is killed in the middle of it.
            name = f"visitor {number}"
            visitor = cluster.start_worker(0, name=name)
            if number % 2:
                visitor.send(signal.SIGKILL)
                visitor.wait()
            else:
                self.assertEqual(visitor.wait(), 1, visitor.tail())
            cluster.forget(name)
        deadline = time.monotonic() + 20
        while server.open_files() > before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertLessEqual(server.open_files(), before)
        cluster.release().finish()

    def test_20_workers_and_4_servers(self):
        reports = run(self, servers=4, workers=20, plan={**PLAN, "steps": [5]})
        self.assertEqual(len(reports), 20)
        digest(self, reports)


if __name__ == "__main__":
    unittest.main()
