// Good input: what files and flags together make of a config, and what is printed of it.
#include "common/base/error.h"
#include "common/config/command_line.h"
#include "common/config/flags.h"
#include "common/config/pages.h"
#include "common/config/toml_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace parley {
namespace {

Settings settings_of(const std::string& toml, const std::vector<std::string>& arguments = {}) {
  Faults faults;
  std::vector<Given> file;
  if (!toml.empty()) file = read_config_text(toml, "job.toml", faults);
  const RawFlags flags = read_flags(arguments, {}, true, faults);
  faults.throw_if_any();
  return combine(file, flags.keys);
}

const Setting& setting(const Settings& settings, std::string_view name) {
  return settings.entries[index_of(*find_key(name))];
}

TEST(ConfigSettings, DefaultsAlone) {
  const Settings settings = settings_of("");
  EXPECT_EQ(settings.config.cluster.servers, 2);
  EXPECT_EQ(settings.config.sync.mode, SyncMode::bsp);
  EXPECT_EQ(settings.config.cluster.heartbeat_interval, std::chrono::milliseconds(500));
  EXPECT_EQ(settings.warning, "");
  EXPECT_EQ(setting(settings, "cluster.servers").where, "default");
}

TEST(ConfigSettings, FlagsWinOverTheFileAndTheFileOverDefaults) {
  const Settings settings = settings_of("[cluster]\nservers = 3\nworkers = 5\n", {"--cluster.workers=7"});
  EXPECT_EQ(settings.config.cluster.servers, 3);
  EXPECT_EQ(settings.config.cluster.workers, 7);
  EXPECT_EQ(setting(settings, "cluster.servers").where, "job.toml:2");
  EXPECT_EQ(setting(settings, "cluster.workers").where, "--cluster.workers");
  EXPECT_EQ(setting(settings, "cluster.workers").source, Source::flag);
  EXPECT_EQ(setting(settings, "server.shards").where, "default");
}

TEST(ConfigSettings, EveryTypeFromAFile) {
  const Settings settings = settings_of(R"(
    train.seed = 0x10
    data.dir = 'C:\data'
    [optimizer]
    name = "sgd"
    learning_rate = 1          # an integer is fine for a number
    momentum = 0.9
    nesterov = true
    weight_decay = 5e-3
    no_decay = ["*.bias", "norm?"]
    [model]
    hidden = []
    [cluster]
    heartbeat_timeout = 1.25
  )");
  EXPECT_EQ(settings.config.train.seed, 16);
  EXPECT_EQ(settings.config.data.dir, "C:\\data");
  EXPECT_EQ(settings.config.optimizer.learning_rate, 1.0);
  EXPECT_EQ(settings.config.optimizer.momentum, 0.9);
  EXPECT_TRUE(settings.config.optimizer.nesterov);
  EXPECT_EQ(settings.config.optimizer.no_decay, (std::vector<std::string>{"*.bias", "norm?"}));
  EXPECT_TRUE(settings.config.model.hidden.empty());
  EXPECT_EQ(settings.config.cluster.heartbeat_timeout, std::chrono::milliseconds(1250));
  EXPECT_EQ(settings.warning, "");
}

TEST(ConfigSettings, EveryTypeFromFlags) {
  const Settings settings =
      settings_of("", {"--train.seed", "9223372036854775807", "--optimizer.learning_rate=1e-3",
                       "--optimizer.weight_decay", "1", "--optimizer.no_decay", "*.bias, norm?", "--model.hidden",
                       "[512,256]", "--cluster.job=", "--debug.slow_rank", "-1", "--optimizer.nesterov=false",
                       "--device", "cuda:1", "--cluster.coordinator=[::1]:7070"});
  EXPECT_EQ(settings.config.train.seed, INT64_MAX);
  EXPECT_EQ(settings.config.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(settings.config.optimizer.no_decay, (std::vector<std::string>{"*.bias", "norm?"}));
  EXPECT_EQ(settings.config.model.hidden, (std::vector<std::int64_t>{512, 256}));
  EXPECT_EQ(settings.config.cluster.job, "");
  EXPECT_EQ(setting(settings, "cluster.job").source, Source::flag);
  EXPECT_EQ(settings.config.worker.device, "cuda:1");
  EXPECT_TRUE(settings_of("", {"--model.hidden", ""}).config.model.hidden.empty());
}

TEST(ConfigSettings, WhatHasNoEffectInTheFileIsNamedInOneLineAndHoldsItsDefault) {
  const std::string toml = "[sync]\nmode = 'ssp'\nstaleness = 7\n[data]\nsplit = 'dynamic'\n[cluster]\nservers = 3\n";
  EXPECT_EQ(settings_of(toml).warning, "");
  EXPECT_EQ(settings_of(toml).config.sync.staleness, 7);

  const Settings bsp = settings_of(toml, {"--sync.mode", "bsp"});
  EXPECT_EQ(bsp.warning,
            "without effect here: data.split (job.toml:5): counts only with sync.mode = ssp or asp; "
            "sync.staleness (job.toml:3): counts only with sync.mode = ssp");
  EXPECT_EQ(bsp.config.data.split, DataSplit::static_split);
  EXPECT_EQ(bsp.config.sync.staleness, Config{}.sync.staleness);
  EXPECT_FALSE(setting(bsp, "sync.staleness").active);
  EXPECT_EQ(setting(bsp, "sync.staleness").value, Value(std::int64_t{7}));

  const Settings none = settings_of(toml, {"--sync.mode", "none"});
  EXPECT_NE(none.warning.find("cluster.servers (job.toml:7)"), std::string::npos);
  EXPECT_EQ(std::count(none.warning.begin(), none.warning.end(), '\n'), 0);
}

TEST(ConfigSettings, ModesDecideHowManyProcessesRun) {
  const auto counts = [](const char* mode) {
    const Config config =
        settings_of("cluster.servers = 3\ncluster.workers = 5\ntrain.batch_size = 10", {"--sync.mode", mode}).config;
    return std::tuple(server_count(config), worker_count(config), global_batch(config));
  };
  EXPECT_EQ(counts("bsp"), std::tuple(3, 5, 50));
  EXPECT_EQ(counts("ssp"), std::tuple(3, 5, 50));
  EXPECT_EQ(counts("asp"), std::tuple(3, 5, 50));
  EXPECT_EQ(counts("allreduce"), std::tuple(0, 5, 50));
  EXPECT_EQ(counts("none"), std::tuple(0, 1, 50));
  EXPECT_EQ(global_batch(settings_of("train.global_batch = 3").config), 3);
}

TEST(ConfigSettings, ADefaultMayFollowAnotherKey) {
  EXPECT_EQ(settings_of("optimizer.name = 'adagrad'").config.optimizer.epsilon, 1e-10);
  EXPECT_EQ(settings_of("optimizer.name = 'adam'").config.optimizer.epsilon, 1e-8);
  EXPECT_EQ(settings_of("optimizer.name = 'adagrad'\noptimizer.epsilon = 1e-8").config.optimizer.epsilon, 1e-8);
}

TEST(ConfigSettings, SecondsComeBackExactly) {
  for (const char* text : {"0.57", "0.1", "1.1", "86399.999", "60.0"}) {
    const Settings settings = settings_of("", {"--cluster.start_timeout", text});
    EXPECT_EQ(to_toml(find_key("cluster.start_timeout")->get(settings.config)), text);
  }
}

TEST(ConfigSettings, ThePrintedConfigReadsBackTheSame) {
  for (const char* mode : {"bsp", "ssp", "asp", "allreduce", "none"}) {
    const Settings settings = settings_of(
        "[optimizer]\nname = 'rmsprop'\nmomentum = 0.1\nweight_decay = 0.3\nno_decay = "
        "['a\"b\\c']\n"
        "learning_rate = 0.1234567890123456789\n[cluster]\nservers = 3\nheartbeat_interval = 0.7\n"
        "[sync]\nstaleness = 9\n",
        {"--sync.mode", mode, "--data.dir", "/tmp/a # b"});
    const std::string text = toml_page(settings);
    const Settings again = settings_of(text);
    EXPECT_EQ(again.warning, "") << mode;
    for (const Key& key : keys()) {
      EXPECT_EQ(key.get(again.config), key.get(settings.config)) << key.name;
      EXPECT_NE(text.find(std::string(key.leaf()) + " = "), std::string::npos) << key.name;
    }
    EXPECT_EQ(fingerprint(again.config), fingerprint(settings.config));
    EXPECT_EQ(job_entries(again.config), job_entries(settings.config));
  }
  EXPECT_NE(toml_page(settings_of("sync.staleness = 9\n"))
                .find("\n# staleness = 9  # job.toml:1; without effect: counts only with sync.mode"),
            std::string::npos);
}

TEST(ConfigSettings, TheJobIsWhatAllProcessesMustAgreeAbout) {
  const Config base = settings_of("").config;
  const std::uint64_t before = fingerprint(base);
  EXPECT_EQ(fingerprint(settings_of("").config), before);
  // May differ: where a process listens, what it computes on, where its data lies.
  EXPECT_EQ(
      fingerprint(settings_of("", {"--cluster.bind", "0.0.0.0", "--worker.device", "cpu", "--data.dir", "/elsewhere",
                                   "--cluster.data_port", "9000", "--cluster.coordinator", "node-a:7070"})
                      .config),
      before);
  EXPECT_NE(fingerprint(settings_of("", {"--train.seed", "2"}).config), before);
  EXPECT_NE(fingerprint(settings_of("", {"--worker.threads", "2"}).config), before);
  // What has no effect does not count.
  EXPECT_EQ(fingerprint(settings_of("sync.staleness = 9").config), before);
  EXPECT_NE(fingerprint(settings_of("sync.staleness = 9\nsync.mode = 'ssp'").config),
            fingerprint(settings_of("sync.staleness = 8\nsync.mode = 'ssp'").config));
  const auto entries = job_entries(base);
  EXPECT_TRUE(
      std::none_of(entries.begin(), entries.end(), [](const auto& entry) { return entry.first == "sync.staleness"; }));
  EXPECT_EQ(entries.front(), std::pair(std::string("cluster.servers"), std::string("2")));
}

TEST(ConfigSettings, JsonForTheLauncher) {
  const Settings settings = settings_of("sync.staleness = 9\ncluster.workers = 3", {"--sync.mode", "allreduce"});
  const auto json = nlohmann::json::parse(json_page(settings));
  EXPECT_EQ(json["config"]["cluster"]["workers"], 3);
  EXPECT_EQ(json["config"]["sync"]["mode"], "allreduce");
  EXPECT_EQ(json["config"]["model"]["hidden"], (std::vector<int>{1024, 1024}));
  EXPECT_EQ(json["provenance"]["sync.mode"], "--sync.mode");
  EXPECT_EQ(json["provenance"]["cluster.workers"], "job.toml:2");
  EXPECT_EQ(json["inactive"]["sync.staleness"], "with sync.mode = ssp");
  EXPECT_EQ(json["servers"], 0);
  EXPECT_EQ(json["workers"], 3);
  EXPECT_EQ(json["global_batch"], 192);
  EXPECT_EQ(json["warning"], settings.warning);
  EXPECT_EQ(json["job"].size(), job_entries(settings.config).size());
  EXPECT_EQ(json["fingerprint"].get<std::string>().size(), 16u);
}

TEST(ConfigSettings, EveryExampleLoadsWithoutAWarning) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("configs")) {
    ASSERT_EQ(entry.path().extension(), ".toml");
    const CommandLine line = parse_command_line(Role::worker, {"--config", entry.path().string(), "--check-config"});
    EXPECT_EQ(line.settings.warning, "") << entry.path();
    EXPECT_NE(page(line).find(": valid\n"), std::string::npos);
    ++count;
  }
  EXPECT_GE(count, 6);
}

TEST(ConfigSettings, TheFirstExampleServesEveryMode) {
  for (const char* mode : {"bsp", "ssp", "asp", "allreduce", "none"}) {
    const CommandLine line =
        parse_command_line(Role::worker, {"--config", "configs/mnist.toml", "--sync.mode", mode, "--rank", "0"});
    EXPECT_EQ(word(line.settings.config.sync.mode), mode);
    EXPECT_EQ(global_batch(line.settings.config), 64);
  }
}

TEST(ConfigCommandLine, TheFlagsBesideTheKeys) {
  const CommandLine line =
      parse_command_line(Role::worker, {"--rank=1", "--output-dir", "runs/1", "--progress-fd", "5", "--start-count",
                                        "2", "--insecure", "--cluster.bind", "0.0.0.0", "--device=cpu"});
  EXPECT_EQ(line.action, Action::run);
  EXPECT_EQ(line.rank, Rank(1));
  EXPECT_EQ(line.output_dir, "runs/1");
  EXPECT_EQ(line.progress_fd, 5);
  EXPECT_EQ(line.start_count, 2u);
  EXPECT_TRUE(line.insecure);
  EXPECT_EQ(line.settings.config.worker.device, "cpu");
  // The launcher says which port it took; by hand there is a fixed one.
  EXPECT_EQ(line.settings.config.cluster.coordinator, "127.0.0.1:0");
  const CommandLine by_hand = parse_command_line(Role::server, {});
  EXPECT_EQ(by_hand.settings.config.cluster.coordinator, "127.0.0.1:7070");
  EXPECT_EQ(by_hand.rank, std::nullopt);
  EXPECT_EQ(by_hand.start_count, 0u);
}

TEST(ConfigCommandLine, Actions) {
  const auto action = [](const std::vector<std::string>& arguments) {
    return parse_command_line(Role::server, arguments).action;
  };
  EXPECT_EQ(action({"--print-config"}), Action::print_config);
  EXPECT_EQ(action({"--print-config-json"}), Action::print_config_json);
  EXPECT_EQ(action({"--print-config-markdown"}), Action::print_config_markdown);
  EXPECT_EQ(action({"--check-config"}), Action::check_config);
  EXPECT_EQ(action({"--version"}), Action::print_version);
  EXPECT_EQ(action({"--help", "--nonsense", "--rank", "x"}), Action::print_help);
  EXPECT_NE(page(parse_command_line(Role::worker, {"--help"})).find("--device DEVICE"), std::string::npos);
  EXPECT_EQ(page(parse_command_line(Role::server, {"--help"})).find("--device DEVICE"), std::string::npos);
  EXPECT_EQ(page(parse_command_line(Role::server, {"--version"})).find("parley-server "), 0u);
  // Only a run is held to what a run needs.
  EXPECT_EQ(action({"--print-config", "--cluster.bind", "0.0.0.0"}), Action::print_config);
}

}  // namespace
}  // namespace parley
