"""Strangers who do not know the job at every port of a running one change nothing: field case S12."""

import os
import random
import socket
import subprocess
import unittest

from tests.integration.support.cluster import HOLD, PLAN, Cluster, digest, program, run

MUTATIONS = 10000
MEMORY_BOUND = 64 << 20


def noise(port, count=20):
    """Bytes that are not even ZeroMQ's."""
    random_bytes = random.Random(port)
    texts = [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n", b"\xff" * 64, b"\x00" * 1000]
    texts += [random_bytes.randbytes(random_bytes.randrange(1, 3000)) for _ in range(count)]
    # A greeting of ZMTP 3.1 and then nothing sensible.
    texts.append(b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x01NULL" + b"\x00" * 48 + b"\x04\xff" + b"\xee" * 300)
    for text in texts:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
            try:
                stranger.sendall(text)
                stranger.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has hung up already


def knock(port, count=200):
    for _ in range(count):
        socket.create_connection(("127.0.0.1", port), timeout=10).close()


class GarbageTest(unittest.TestCase):
    def flood(self, port, seed):
        command = [program("GARBAGE_SENDER"), f"tcp://127.0.0.1:{port}", "another job", str(seed), str(MUTATIONS)]
        sent = subprocess.run(command,
                              env=os.environ, capture_output=True, text=True, timeout=120, check=True)
        self.assertGreater(int(sent.stdout), MUTATIONS)

    def disturbed(self, mode):
        """One job whose every port takes everything; returns its digest."""
        cluster = Cluster(self, mode=mode, plan={**PLAN, **HOLD}).start().wait_held()
        servers = cluster.of("server")
        ports = {process: process.listens_on() for process in cluster.processes.values()}
        for process in servers:
            self.assertTrue(ports[process], process.name)
        before = {process: process.resident_bytes() for process in cluster.processes.values()}
        for process, own in ports.items():
            for port in own:
                noise(port)
                knock(port)
                if process in servers:
                    self.flood(port, seed=port)
        for process in cluster.processes.values():
            self.assertTrue(process.running(), process.tail())
            self.assertLess(process.resident_bytes() - before[process], MEMORY_BOUND, process.name)
        found = digest(self, cluster.release().finish())
        for process in servers:
            warnings = [text for text in process.texts("W") if "malformed" in text]
            # One a connection, and never more than a score in a while.
            self.assertGreaterEqual(len(warnings), len(ports[process]), process.tail())
            self.assertLessEqual(len(warnings), 25 * len(ports[process]), process.tail())
        return found

    def test_with_servers(self):
        self.assertEqual(self.disturbed("bsp"), digest(self, run(self, mode="bsp")))

    def test_in_an_all_reduce(self):
        self.assertEqual(self.disturbed("allreduce"), digest(self, run(self, mode="allreduce")))


if __name__ == "__main__":
    unittest.main()
