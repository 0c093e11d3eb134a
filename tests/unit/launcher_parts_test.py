"""The launcher's parts that need no process: command line, plan, ports, lines, screen, table, data."""

import contextlib
import io
import os
import pathlib
import signal
import socket
import sys
import tempfile
import unittest

sys.path.insert(0, os.environ["SOURCE_DIR"])

from tests.support import launcher_fakes  # noqa: E402, F401 (makes the launcher importable)
from launcher import arguments, lines, outlet, placement, plan, ports, prepare, report, results, settings  # noqa: E402
from launcher.errors import LaunchError  # noqa: E402
from launcher.outlet import Outlet  # noqa: E402
from launcher.screen import Screen  # noqa: E402


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.config = self.folder / "job.toml"
        self.config.write_text("", encoding="utf-8")

    def parse(self, *flags):
        return arguments.parse([str(self.config), *flags])


class ArgumentsTest(WithFolder):
    def assert_refused(self, part, *argv):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
            arguments.parse(list(argv))
        self.assertEqual(end.exception.code, 2)
        self.assertIn(part, said.getvalue())

    def test_flags_of_the_programs_go_on_as_they_are(self):
        flags = ("--sync.mode", "ssp", "--debug.slow_rank", "-1", "--optimizer.no_decay", "", "--train.seed=3")
        given = self.parse(*flags, "--output-dir", "out")
        self.assertEqual((given.flags, given.output_dir), (flags, pathlib.Path("out")))

    def test_our_own_switches_may_stand_in_front(self):
        given = arguments.parse(["--dry-run", str(self.config), "--sync.mode", "asp"])
        self.assertEqual((given.dry_run, given.flags), (True, ("--sync.mode", "asp")))

    def test_short_forms(self):
        given = self.parse("--device", "cuda:1", "--insecure")
        self.assertEqual(given.flags, ("--worker.device", "cuda:1", "--insecure"))

    def test_the_preset_names_the_programs(self):
        self.assertEqual(self.parse("--preset", "cuda").worker, arguments.ROOT / "build/cuda/worker/parley-worker")

    def test_faults(self):
        config = str(self.config)
        self.assert_refused("CONFIG")
        self.assert_refused("no such file; expected a config", "nowhere.toml")
        self.assert_refused("no such file; expected a config, in front of the flags", "--sync.mode", "ssp", config)
        self.assert_refused("a folder; expected a config", str(self.folder))
        self.assert_refused("--rank: each process is given its own", config, "--rank=1")
        self.assert_refused("--config: each process", config, "--config", config)

    def test_a_flag_is_taken_out_in_both_spellings(self):
        flags = ("--a", "1", "--b=2", "--ab", "3", "--b", "4")
        self.assertEqual(arguments.without_flag(flags, "--a"), ("--b=2", "--ab", "3", "--b", "4"))
        self.assertEqual(arguments.without_flag(flags, "--b"), ("--a", "1", "--ab", "3"))
        self.assertEqual(arguments.without_flag(("--a",), "--a"), ())


class PlanTest(WithFolder):
    def plan(self, *flags, **changes):
        found = settings.from_page(launcher_fakes.page(**changes))
        self.asked = []

        def free_blocks(hosts, sizes):
            self.asked.append((hosts, sizes))
            return [20000 + 100 * i for i in range(len(sizes))]

        made = plan.make(self.parse(*flags), found, pathlib.Path("/out"), "run-x", free_blocks)
        return made, {spec.name: " ".join(spec.command) for spec in made.specs}

    def test_open_ports_are_chosen_and_may_be_chosen_anew(self):
        made, commands = self.plan(server__shards=2)
        self.assertEqual(self.asked, [({"127.0.0.1"}, [1, 2, 2])])
        self.assertEqual(made.chosen_ports, {20000, 20100, 20101, 20200, 20201})
        self.assertIn("--cluster.coordinator 127.0.0.1:20000", commands["worker 1"])
        self.assertIn("--cluster.data_port 20200", commands["server 1"])
        self.assertNotIn("data_port", commands["worker 0"])
        self.assertIn("--cluster.job run-x", commands["server 0"])

    def test_configured_ports_and_names_stay(self):
        made, commands = self.plan(cluster__coordinator="[::1]:7070", cluster__data_port=7071, cluster__job="mine",
                                   server__shards=3)
        self.assertEqual((made.chosen_ports, self.asked[0][1]), (frozenset(), []))
        self.assertNotIn("coordinator", commands["server 0"])
        self.assertNotIn("cluster.job", commands["server 0"])
        self.assertIn("--cluster.data_port 7071", commands["server 0"])
        self.assertIn("--cluster.data_port 7074", commands["server 1"])

    def test_a_flag_that_we_replace_is_not_given_twice(self):
        _, commands = self.plan("--cluster.data_port", "8000", "--cluster.job=", "--cluster.coordinator", "node:0",
                                cluster__data_port=8000, cluster__coordinator="node:0")
        for flag in ("--cluster.data_port", "--cluster.job", "--cluster.coordinator"):
            self.assertEqual(commands["server 0"].count(flag), 1, flag)
        self.assertIn("--cluster.coordinator node:20000", commands["server 0"])

    def test_all_reduce_has_a_coordinator_and_no_data_ports(self):
        _, commands = self.plan(servers=0, inactive={"cluster.data_port": "with servers"})
        self.assertEqual(list(commands), ["server 0", "worker 0", "worker 1"])
        self.assertNotIn("data_port", commands["server 0"])

    def test_none_is_one_worker_without_network(self):
        inactive = {f"cluster.{key}": "" for key in ("coordinator", "data_port", "job")}
        _, commands = self.plan(servers=0, workers=1, inactive=inactive)
        self.assertEqual(list(commands), ["worker 0"])
        self.assertEqual(self.asked, [])
        self.assertNotIn("--cluster", commands["worker 0"])

    def test_worker_0_reports_progress(self):
        made, _ = self.plan()
        self.assertEqual([spec.name for spec in made.specs if spec.reports_progress], ["worker 0"])


class PortsTest(unittest.TestCase):
    def test_ports_lie_below_the_ephemeral_range_or_else_above_it(self):
        self.assertEqual(ports.port_range("32768\t60999\n"), range(10240, 32768))
        self.assertEqual(ports.port_range("1024 20000"), range(20001, 65536))
        self.assertEqual(ports.port_range("1024 65535"), range(10240, 65536))

    def test_blocks_are_free_side_by_side_and_apart(self):
        blocks = ports.free_blocks({"h"}, [3, 3, 1], lambda _, port: port % 10 not in (0, 5), range(1000, 1020))
        used = [first + i for first, size in zip(blocks, (3, 3, 1)) for i in range(size)]
        self.assertEqual(len(set(used)), 7)
        self.assertFalse([port for port in used if port % 10 in (0, 5) or not 1000 <= port < 1020])

    def test_none_free(self):
        with self.assertRaisesRegex(LaunchError, "no 2 free ports side by side were found on h from 1000 to 1009"):
            ports.free_blocks({"h"}, [2], lambda _, port: port % 2 == 0, range(1000, 1010))

    def test_a_port_that_somebody_holds_is_not_free(self):
        with socket.create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            self.assertFalse(ports.is_free("127.0.0.1", port))
            self.assertFalse(ports.is_free("0.0.0.0", port))

    def test_an_address_that_is_not_ours_is_left_to_the_program(self):
        self.assertTrue(ports.is_free("192.0.2.1", 20000))


class LinesTest(unittest.TestCase):
    def test_lines_in_any_pieces(self):
        for size in (1, 2, 5, 100):
            splitter, found = lines.LineSplitter(), []
            data = "one\r\n\nzwei ü\nlast".encode()
            for at in range(0, len(data), size):
                found += splitter.feed(data[at:at + size])
            self.assertEqual(found + splitter.finish(), ["one", "", "zwei ü", "last"])

    def test_what_is_kept_of_a_line_is_bounded(self):
        splitter = lines.LineSplitter()
        for _ in range(1000):
            splitter.feed(b"a" * 1000)
        (line,) = splitter.feed(b"\n")
        self.assertEqual(line, "a" * 2000 + " … (998000 more bytes)")
        self.assertEqual(splitter.feed(b"next\n"), ["next"])

    def test_nothing_steers_the_terminal(self):
        self.assertEqual(lines.readable(b"\x1b[2J\x07\xffa\tb\xc2\x9b"), "\\x1b[2J\\x07\\xffa\tb\\x9b")

    def test_the_head_of_a_log_line_is_left_out(self):
        head = "20261201 15:31:00.123456  4711 shard_loop.cc:123] "
        self.assertEqual(lines.parse(f"E{head}server 0: it broke", "server 0"), ("E", "it broke"))
        self.assertEqual(str(lines.parse(f"W{head}server: too early", "server 0")), "warning: too early")
        self.assertEqual(str(lines.parse(f"I{head}fine", "server 0")), "fine")
        self.assertEqual(str(lines.parse("E no log line", "server 0")), "E no log line")


class ScreenTest(unittest.TestCase):
    def setUp(self):
        self.now, self.stream = 0.0, io.StringIO()
        self.screen = Screen(self.stream, lambda: self.now)

    def test_elsewhere_progress_is_a_plain_line_now_and_then(self):
        for self.now in range(25):
            self.screen.progress_lines(['{"clock":%d,"total":60,"epoch":0,"loss":null}' % self.now])
        self.assertEqual(self.stream.getvalue(), "run: training: 10 of 60, epoch 1\nrun: training: 20 of 60, epoch 1\n")

    def test_a_line_that_is_no_progress_says_nothing(self):
        self.now = 100
        for line in ("garbage", "{}", "[]", '{"coordinator": "127.0.0.1:7070"}', '{"clock":"x","total":1}'):
            self.screen.progress_lines([line])
        self.assertEqual(self.stream.getvalue(), "")

    def test_hidden_lines(self):
        spec = plan.Spec("worker", 11, ())
        self.screen.hide("twice")
        self.screen.output(spec, ["twice", "once"])
        self.assertEqual(self.stream.getvalue(), "worker 11 | once\n")


class OutletTest(unittest.TestCase):
    def setUp(self):
        read_end, write_end = os.pipe()
        self.reader = self.enterContext(open(read_end, "rb", buffering=0))
        self.writer = self.enterContext(open(write_end, "w", encoding="ascii"))
        self.outlet = Outlet(self.writer, patience=0.01)

    def test_what_nobody_reads_is_left_out_and_said(self):
        for _ in range(100):
            self.outlet.write("x" * 1023 + "\n")
        held = self.reader.read(1 << 20)
        self.assertGreater(len(held), 32 << 10)
        self.assertLess(len(held), 100 << 10)
        self.outlet.write("again\n")
        self.assertEqual(self.reader.read(1 << 20), outlet.LEFT_OUT + b"again\n")

    def test_a_reader_that_has_gone_is_no_error(self):
        self.reader.close()
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        self.outlet.write("nobody\n")
        self.outlet.write("nobody\n")

    def test_any_character_can_be_written(self):
        self.outlet.write("… ü\n")
        self.assertEqual(self.reader.read(100), b"\\u2026 \\xfc\n")


class ReportTest(unittest.TestCase):
    def test_the_table_leaves_out_what_is_not_there(self):
        text = report.table({"mode": "none", "test_loss": None, "seconds": 1.5, "staleness_mean": 0.5,
                             "staleness_max": 2, "time_shares": {"compute": 0.25, "waiting": None}})
        self.assertEqual(text.splitlines(), [
            "mode                  none", "seconds               1.50", "compute               25.0 %",
            "staleness             mean 0.50, max 2 clocks"])

    def test_sizes(self):
        self.assertEqual([placement.size(n) for n in (0, 1023, 1024, 5 << 20, 3 << 40)],
                         ["0 B", "1023 B", "1.0 KiB", "5.0 MiB", "3.0 TiB"])

    def test_a_shard_that_holds_nothing(self):
        made = plan.Plan((), frozenset())
        text = placement.text(made, {**launcher_fakes.PLACEMENT, "skew": None})
        self.assertIn("skew: a shard holds nothing\n", text)
        with self.assertRaisesRegex(LaunchError, "KeyError..servers.. in its answer"):
            placement.text(made, {"tensors": []})


class FolderTest(WithFolder):
    def test_runs_of_one_second_have_folders_of_their_own(self):
        path = self.folder / "runs" / "a+b-1"
        made = [results._new_folder(path).name for _ in range(3)]
        self.assertEqual(made, ["a+b-1", "a+b-1-2", "a+b-1-3"])


class DataTest(WithFolder):
    def flags(self, where, directory="data/mnist", cwd=None):
        found = settings.from_page(launcher_fakes.page(data__dir=directory, provenance={"data.dir": where}))
        with contextlib.chdir(cwd or self.folder):
            return prepare.data_flags(found)

    def test_examples_find_their_data_from_any_folder(self):
        there = ("--data.dir", str(arguments.ROOT / "data/mnist"))
        self.assertEqual(self.flags("default"), there)
        self.assertEqual(self.flags("configs/mnist.toml:18:1"), there)

    def test_other_paths_are_left_alone(self):
        self.assertEqual(self.flags("--data.dir"), ())
        self.assertEqual(self.flags("job.toml:1:1", "other"), ())
        self.assertEqual(self.flags("default", cwd=arguments.ROOT), ())
        (self.folder / "data" / "mnist").mkdir(parents=True)
        self.assertEqual(self.flags("default"), ())

    def test_which_files_count(self):
        names = ["train-images-idx3-ubyte", "train-labels.idx1-ubyte", "t10k-images-idx3-ubyte.gz",
                 "t10k-labels-idx1-ubyte"]
        for name in names:
            self.assertFalse(prepare.has_idx_files(self.folder))
            (self.folder / name).touch()
        self.assertTrue(prepare.has_idx_files(self.folder))
        self.assertFalse(prepare.has_idx_files(self.folder / "nowhere"))


if __name__ == "__main__":
    unittest.main()
