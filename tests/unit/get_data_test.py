"""scripts/get-data without a network: the split, the files it writes, and what it refuses to touch."""

import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2])) / "scripts" / "get-data"


def load_script():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("get_data", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("get_data", loader))
    loader.exec_module(module)
    return module


get_data = load_script()


class Split(unittest.TestCase):
    def setUp(self):
        # 120 lines of each class, as sorted as the real file; the first two pixels number the line.
        lines = []
        for number in range(1200):
            lines.append(",".join(map(str, [number // 256, number % 256, *[0] * 782, number // 120])))
        self.files = get_data.split_digits("\n".join(lines).encode())

    def samples(self, part):
        images = self.files[f"{part}-images-idx3-ubyte"]
        labels = self.files[f"{part}-labels-idx1-ubyte"]
        count = len(labels) - 8
        self.assertEqual(images[:16], bytes([0, 0, 8, 3]) + count.to_bytes(4, "big") + bytes([0, 0, 0, 28] * 2))
        self.assertEqual(labels[:8], bytes([0, 0, 8, 1]) + count.to_bytes(4, "big"))
        self.assertEqual(len(images), 16 + 784 * count)
        return [(images[16 + 784 * i] * 256 + images[17 + 784 * i], labels[8 + i]) for i in range(count)]

    def test_every_line_is_in_one_part_with_its_label(self):
        train, test = self.samples("train"), self.samples("t10k")
        self.assertEqual(sorted(train + test), [(n, n // 120) for n in range(1200)])

    def test_classes_are_balanced_and_mixed(self):
        for part, each in (("train", 96), ("t10k", 24)):
            labels = [label for _, label in self.samples(part)]
            self.assertEqual([labels.count(c) for c in range(10)], [each] * 10)
            self.assertEqual(len(set(labels[:60])), 10, "the classes are still in order")


class Files(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "sets" / "mnist"
        self.contents = {"a-ubyte": b"first", "b-ubyte": b"second"}
        self.checksums = {name: hashlib.sha256(data).hexdigest() for name, data in self.contents.items()}

    def test_written_files_are_whole_and_nothing_else_is_left(self):
        self.assertEqual(get_data.missing_files(self.folder, self.checksums), ["a-ubyte", "b-ubyte"])
        get_data.write_files(self.folder, self.contents)
        self.assertEqual(get_data.missing_files(self.folder, self.checksums), [])
        self.assertEqual([p.name for p in self.folder.parent.iterdir()], ["mnist"])

    def test_a_missing_file_is_added(self):
        get_data.write_files(self.folder, self.contents)
        (self.folder / "a-ubyte").unlink()
        (self.folder / "notes.txt").write_text("mine")
        self.assertEqual(get_data.missing_files(self.folder, self.checksums), ["a-ubyte"])
        get_data.write_files(self.folder, self.contents)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a-ubyte", "b-ubyte", "notes.txt"])

    def test_files_of_others_are_refused(self):
        get_data.write_files(self.folder, self.contents)
        (self.folder / "a-ubyte").write_bytes(b"fir")
        with self.assertRaisesRegex(get_data.Failure, "a-ubyte: checksum .*, expected .*: damaged"):
            get_data.missing_files(self.folder, self.checksums)
        (self.folder / "a-ubyte.gz").write_bytes(b"")
        with self.assertRaisesRegex(get_data.Failure, "a-ubyte.gz: not written by this script"):
            get_data.missing_files(self.folder, self.checksums)


class CommandLine(unittest.TestCase):
    def run_script(self, *arguments, **environment):
        return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, env={**os.environ, **environment})

    def test_no_mirror(self):
        with tempfile.TemporaryDirectory() as scratch:
            # A port that refuses stands in for a site without a way out.
            done = self.run_script("mnist", "--full", "--dir", scratch + "/full", https_proxy="http://127.0.0.1:9")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"^get-data: train-images-idx3-ubyte.gz cannot be fetched \(.*refused.*\n$")
            self.assertEqual(os.listdir(scratch), [])

    def test_unknown_set(self):
        done = self.run_script("cifar")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'cifar' (choose from 'mnist')", done.stderr)


if __name__ == "__main__":
    unittest.main()
