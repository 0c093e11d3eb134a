"""The real worker on small MNIST files: every mode, odd data, odd splits. Field cases S03, S28, S31, S33.

What is exact: the digest of bsp whatever the servers and shards, and bsp against all-reduce with two workers. Other
numbers of workers split the same global batch differently, so they and `none` agree up to float32 rounding: compared
by the loss of the first steps, weighted by samples.
"""

import gzip
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from tests.integration.support import mnist_files
from tests.integration.support.cluster import Cluster

STEPS = 12


class MnistTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="parley-mnist-"))
        cls.data = mnist_files.write(cls.root / "data")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root, ignore_errors=True)

    def cluster(self, mode="bsp", workers=2, flags=None, data=None, **options):
        own = {"data.dir": data or self.data, "train.max_steps": STEPS, "train.batch_size": 16,
               "optimizer.momentum": 0.9,
               "model.type": "mlp", "model.hidden": "[32]", "worker.device": "cpu", **(flags or {})}
        if own["model.type"] == "lenet5":
            del own["model.hidden"]
        if "train.global_batch" in own:
            del own["train.batch_size"]
        if mode != "none":
            own["server.slice_bytes"] = 4096
            own["cluster.connect_timeout"] = 60
        cluster = Cluster(self, mode=mode, workers=workers,
                          flags={key: value for key, value in own.items() if value != ""},
                          **options)
        cluster.start_servers()
        for rank in range(workers if mode != "none" else 1):
            cluster.start_real_worker(rank)
        return cluster

    def train(self, *arguments, **options):
        """Trains to the end; report.json, and the lines of metrics.jsonl."""
        cluster = self.cluster(*arguments, **options)
        cluster.finish(timeout=120)
        report = json.loads((cluster.folder / "out" / "report.json").read_text())
        metrics = (cluster.folder / "out" / "metrics.jsonl").read_text().splitlines()
        return report, [json.loads(line) for line in metrics]

    def digest(self, *arguments, **options):
        return self.train(*arguments, **options)[0]["weights_digest"]

    def losses(self, metrics):
        """By clock: the loss of all samples of that clock."""
        total, count = {}, {}
        for line in metrics:
            if line["samples"]:
                total[line["clock"]] = total.get(line["clock"], 0) + line["loss"] * line["samples"]
                count[line["clock"]] = count.get(line["clock"], 0) + line["samples"]
        return [total[clock] / count[clock] for clock in sorted(total)], [count[clock] for clock in sorted(count)]


class ModeTest(MnistTest):
    def test_the_digest_does_not_depend_on_servers_and_shards(self):
        for workers in (2, 3):
            found = {}
            for servers, shards in ((1, 1), (2, 1), (3, 1), (2, 3)):
                flags = {"server.shards": shards, "model.type": "lenet5"}
                found[servers, shards] = self.digest("bsp", workers=workers, servers=servers, flags=flags)
            self.assertEqual(len(set(found.values())), 1, found)
            if workers == 2:
                self.assertEqual(self.digest("allreduce", workers=2, flags={"model.type": "lenet5"}), found[1, 1])

    def test_the_other_modes_learn(self):
        for mode in ("ssp", "asp", "none"):
            with self.subTest(mode=mode):
                report, _ = self.train(mode, flags={"train.max_steps": 40, "optimizer.learning_rate": 0.02})
                self.assertEqual(report["mode"], mode)
                self.assertGreater(report["test_accuracy"], 0.5)

    def test_dynamic_split(self):
        flags = {"data.split": "dynamic", "train.max_steps": "", "train.epochs": 2}
        for mode in ("ssp", "asp"):
            with self.subTest(mode=mode):
                _, metrics = self.train(mode, flags=flags)
                self.assertEqual(sum(line["samples"] for line in metrics), 600)

    def test_the_same_global_batch_over_more_workers(self):
        reference, _ = self.losses(self.train("none", workers=1, flags={"train.batch_size": 64})[1])
        for mode, workers, flags in (
                ("bsp", 1, {"train.batch_size": 64}), ("bsp", 2, {"train.batch_size": 32}),
                ("bsp", 4, {"train.batch_size": 16}), ("bsp", 3, {"train.global_batch": 64}),
                ("allreduce", 3, {"train.global_batch": 64})):
            with self.subTest(mode=mode, workers=workers):
                losses, samples = self.losses(self.train(mode, workers=workers, flags=flags)[1])
                # 300 images: an epoch is four full batches and one of 44.
                self.assertEqual(samples, [64, 64, 64, 64, 44] * 2 + [64, 64])
                for clock, (found, expected) in enumerate(zip(losses, reference, strict=True)):
                    self.assertAlmostEqual(found, expected, delta=1e-4, msg=f"clock {clock}")


class DataTest(MnistTest):
    """The files are read before anything is joined, so one process without a network is enough."""

    def copy(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        return shutil.copytree(self.data, folder / "data")

    def refused(self, data, *words):
        error = self.cluster("none", data=data).fail(status=2)["worker 0"]
        for word in words:
            self.assertIn(str(word), error)

    def test_3_samples_over_7_workers(self):
        data = mnist_files.write(self.root / "three", train=3)
        flags = {"train.max_steps": "", "train.epochs": 2, "train.batch_size": 1}
        for mode in ("bsp", "allreduce"):
            with self.subTest(mode=mode):
                _, metrics = self.train(mode, workers=7, flags=flags, data=data)
                self.assertEqual(sum(line["samples"] for line in metrics), 6)

    def test_no_epoch(self):
        for mode in ("bsp", "none"):
            with self.subTest(mode=mode):
                cluster = self.cluster(mode, flags={"train.max_steps": "", "train.epochs": 0})
                cluster.finish(timeout=120)
                report = json.loads((cluster.folder / "out" / "report.json").read_text())
                self.assertEqual(report["steps"], 0)
                self.assertIsNotNone(report["test_accuracy"])

    def test_an_empty_file(self):
        data = self.copy()
        (data / "train-images-idx3-ubyte").write_bytes(b"")
        self.refused(data, data / "train-images-idx3-ubyte", "empty")

    def test_a_missing_file(self):
        data = self.copy()
        (data / "train-labels-idx1-ubyte").unlink()
        self.refused(data, "train-labels-idx1-ubyte")

    def test_images_and_labels_swapped(self):
        data = self.copy()
        (data / "train-images-idx3-ubyte").write_bytes(mnist_files.labels_file(300))
        (data / "train-labels-idx1-ubyte").write_bytes(mnist_files.images_file(300))
        self.refused(data, data / "train-images-idx3-ubyte", "0x00000801", "0x00000803", "swapped")

    def test_a_truncated_file(self):
        data = self.copy()
        (data / "train-images-idx3-ubyte").write_bytes(mnist_files.images_file(300)[:-1])
        self.refused(data, data / "train-images-idx3-ubyte", 16 + 300 * 784 - 1, 16 + 300 * 784)

    def test_another_count_of_labels(self):
        data = self.copy()
        (data / "train-labels-idx1-ubyte").write_bytes(mnist_files.labels_file(299))
        self.refused(data, data / "train-labels-idx1-ubyte", 299, 300)

    def test_a_label_of_10(self):
        data = self.copy()
        content = bytearray(mnist_files.labels_file(300))
        content[8 + 17] = 10
        (data / "train-labels-idx1-ubyte").write_bytes(content)
        self.refused(data, data / "train-labels-idx1-ubyte", "label 10", "sample 17", "0 to 9")

    def test_bad_data_of_one_worker_ends_everybody(self):
        data = self.copy()
        (data / "train-images-idx3-ubyte").write_bytes(b"")
        cluster = self.cluster("bsp", workers=1, flags={"cluster.workers": 2, "cluster.start_timeout": 15})
        bad = cluster.start_real_worker(1, flags={"data.dir": data})
        self.assertEqual(bad.wait(60), 2)
        self.assertIn("train-images-idx3-ubyte: the file is empty", cluster.forget("worker 1").last_error())
        for error in cluster.fail().values():
            self.assertIn("worker 1 missing", error)

    def test_other_names_and_gz_train_the_same(self):
        plain = self.digest("none")
        for change in ("gz", "dots"):
            with self.subTest(change=change):
                data = self.copy()
                for path in list(data.iterdir()):
                    if change == "gz":
                        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
                        path.unlink()
                    else:
                        path.rename(path.with_name(path.name.replace("-idx", ".idx")))
                self.assertEqual(self.digest("none", data=data), plain)


if __name__ == "__main__":
    if not os.environ.get("PARLEY_WORKER"):
        print("skipped: parley-worker was not built (it needs LibTorch)")
        sys.exit(77)
    unittest.main()
