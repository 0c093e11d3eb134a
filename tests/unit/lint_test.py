"""Shows each rule of scripts/lib/lint_rules.py a fault to find and a neighbour to let pass."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["SOURCE_DIR"]) / "scripts" / "lib"))

import lint_rules  # noqa: E402


def findings(path, text):
    if path.endswith(".h") and "#pragma" not in text:
        text = f"{text}#pragma once\n"
    return [finding.text for finding in lint_rules.check(path, text)]


class RuleTest(unittest.TestCase):
    def assert_found(self, path, text, part):
        found = findings(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def assert_clean(self, path, text):
        self.assertEqual(findings(path, text), [])

    def assert_include_found(self, path, include, part):
        self.assert_found(path, f"#include {include}\n", part)

    def assert_include_clean(self, path, include):
        self.assert_clean(path, f"#include {include}\n")


class IncludeTest(RuleTest):
    def test_a_lower_folder_never_sees_a_higher_one(self):
        self.assert_include_found("common/base/a.cc", '"server/core/shard.h"', "lies below server/")
        self.assert_include_found("worker/trainer.cc", '"tests/support/sim.h"', "lies below tests/")
        self.assert_include_clean("worker/trainer.cc", '"common/transport/socket.h"')
        self.assert_include_clean("tests/unit/shard_test.cc", '"server/core/shard.h"')

    def test_server_and_worker_are_strangers(self):
        for path, name in (("server/server.cc", "worker/worker.h"),
                           ("worker/worker.cc", "server/server.h")):
            self.assert_include_found(path, f'"{name}"', "never see each other")

    def test_the_order_inside_common(self):
        self.assert_include_found("common/base/log.cc", '"common/wire/message.h"', "lies below")
        self.assert_include_found("common/wire/frames.h", '"common/transport/ring.h"', "lies below")
        self.assert_include_clean("common/wire/frames.h", '"common/layout/layout.h"')
        self.assert_include_found("common/codec/codec.cc", '"common/base/log.h"', "has no place")

    def test_the_config_is_read_at_the_edge(self):
        config = '"common/config/config.h"'
        self.assert_include_found("common/layout/layout.cc", config, "read at the edge")
        self.assert_include_found("server/core/shard.h", config, "sans-I/O core")
        self.assert_include_clean("server/main.cc", config)
        self.assert_include_clean("common/config/toml.cc", config)
        self.assert_include_clean("common/process/job_options.h", config)

    def test_the_core_knows_no_thread_lock_file_or_socket(self):
        for include in ("<thread>", "<mutex>", "<fstream>", "<sys/socket.h>", "<unistd.h>",
                        '"common/transport/socket.h"', '"common/observe/metrics.h"',
                        '"server/shard_loop.h"'):
            self.assert_include_found("server/core/shard.cc", include, "sans-I/O core")
        self.assert_include_found("worker/core/client.h", "<mutex>", "sans-I/O core")
        for include in ("<vector>", "<cstdint>", "<fmt/format.h>", "<flatbuffers/flatbuffers.h>",
                        '"common/wire/message.h"', '"server/core/clock_table.h"',
                        '"schemas/message_generated.h"'):
            self.assert_include_clean("server/core/shard.cc", include)
        self.assert_include_clean("server/shard_loop.cc", "<thread>")
        self.assert_include_clean("worker/comms_loop.cc", "<thread>")

    def test_libraries_stay_at_home(self):
        self.assert_include_found("server/server.cc", "<torch/torch.h>", "LibTorch")
        self.assert_include_found("tests/unit/x_test.cc", "<ATen/ATen.h>", "LibTorch")
        self.assert_include_clean("tests/unit/torch/x_test.cc", "<ATen/ATen.h>")
        self.assert_include_found("worker/worker.cc", "<glog/logging.h>", "same macros")
        self.assert_include_clean("common/base/log.cc", "<glog/logging.h>")
        self.assert_include_found("worker/comms_loop.cc", "<zmq.hpp>", "common/transport")
        self.assert_include_found("common/config/print.cc", "<cuda_runtime.h>", "devices")

    def test_our_includes_are_written_from_the_root(self):
        self.assert_include_found("server/shard_loop.cc", '"shard.h"', "from the root")

    def test_a_comment_is_no_include(self):
        self.assert_clean("server/core/shard.cc", '// #include "worker/worker.h"\n')
        self.assert_clean("server/core/shard.cc", '/*\n#include <thread>\n*/\n')


class CallTest(RuleTest):
    def test_banned_calls(self):
        for call in ("std::chrono::system_clock::now()", "std::getenv(\"A\")", "rand()",
                     "std::rand()", "std::random_device d", "std::mt19937 g", "std::thread t"):
            self.assert_found("common/wire/message.cc", f"auto x = {call};\n", "banned")

    def test_the_clock_is_read_outside_the_core(self):
        call = "const auto now = std::chrono::steady_clock::now();\n"
        self.assert_found("server/core/shard.cc", call, "does not read it")
        self.assert_clean("common/transport/event_loop.cc", call)

    def test_threads_start_in_files_named_for_them(self):
        self.assert_found("worker/trainer.cc", "std::jthread t(f);\n", "banned")
        for path in ("server/shard_loop.cc", "worker/main.cc", "tests/unit/ring_test.cc"):
            self.assert_clean(path, "std::jthread t(f);\n")
        self.assert_clean("worker/trainer.cc", "std::thread::hardware_concurrency();\n")

    def test_no_sleep_in_quiet_tests(self):
        self.assert_found("tests/unit/x_test.cc", "std::this_thread::sleep_for(s);\n", "sleep")
        self.assert_found("tests/simulation/x_test.cc", "usleep(3);\n", "sleep")
        self.assert_clean("tests/support/child_process.cc", "usleep(3);\n")

    def test_text_is_no_call(self):
        self.assert_clean("common/wire/message.cc", 'auto x = "rand() in a string"; // rand()\n')
        self.assert_clean("common/wire/message.cc", "auto y = stream.rand(3); operand(2);\n")
        self.assert_clean("common/wire/message.cc", "auto n = 1'000; f('\"', 1'000'000);\n")
        self.assert_found("common/wire/message.cc", "f('\"'); rand(); g('\"');\n", "rand")
        self.assert_clean("common/wire/message.cc", 'auto r = R"(a " rand( )";\n')

    def test_the_line_is_named(self):
        found = list(lint_rules.check("server/core/shard.cc", "\n/* a\n b */\nrand();\n"))
        self.assertEqual(str(found[0]).split(": ")[0], "server/core/shard.cc:4")


class FileTest(RuleTest):
    def test_length(self):
        self.assert_clean("server/core/shard.cc", "int x;\n" * 500)
        self.assert_found("server/core/shard.cc", "int x;\n" * 501, "at most 500")
        self.assertEqual(list(lint_rules.notes("server/core/shard.cc", "\n" * 300)), [])
        self.assertEqual(len(list(lint_rules.notes("server/core/shard.cc", "\n" * 301))), 1)
        self.assert_found("scripts/x", "#!/bin/bash\n" + "true\n" * 60, "bash")

    def test_a_header_is_guarded(self):
        found = list(lint_rules.check("common/base/a.h", "int x;  // no #pragma once\n"))
        self.assertEqual([f.text for f in found], ["a header without #pragma once"])

    def test_a_test_lies_where_it_is_found(self):
        for path in ("server/shard_test.cc", "tests/unit/deep/shard_test.cc", "tests/a_test.py"):
            self.assert_found(path, "", "never run")
        for path in ("tests/unit/a_test.cc", "tests/unit/torch/a_test.cc",
                     "tests/integration/a_test.py"):
            self.assert_clean(path, "")

    def test_white_space_and_unfinished_work(self):
        self.assert_found("server/core/shard.cc", "int x; \n", "white space")
        self.assert_found("server/core/shard.cc", "int x;", "newline")
        self.assert_found("server/core/shard.cc", "// TO" + "DO: later\n", "unfinished")
        self.assert_found("scripts/lib/x.py", "x" * 121 + "\n", "at most 120")

    def test_other_files_are_left_alone(self):
        self.assert_clean("docs/a.md", "line \n")
        self.assert_clean("build/x.o", "\t")


if __name__ == "__main__":
    unittest.main()
