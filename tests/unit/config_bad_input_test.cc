// Every way to get a config wrong that we could think of, and the words that must come back.
#include "common/base/error.h"
#include "common/config/command_line.h"
#include "common/config/toml_file.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace parley {
namespace {

std::string fault_of_file(const std::string& toml) {
  Faults faults;
  const std::vector<Given> given = read_config_text(toml, "bad.toml", faults);
  try {
    faults.throw_if_any();
    combine(given, {});
  } catch (const UsageError& fault) {
    return fault.what();
  }
  return "";
}

std::string fault_of_line(const std::vector<std::string>& arguments, Role role = Role::worker) {
  try {
    parse_command_line(role, arguments);
  } catch (const UsageError& fault) {
    return fault.what();
  }
  return "";
}

struct BadFile {
  const char* toml;
  const char* message;  // a part of it
};

const BadFile kBadFiles[] = {
    // Names.
    {"[clutser]\nservers = 1\n", "bad.toml:1:2: unknown section [clutser]; did you mean [cluster]?"},
    {"[fault]\nreplicas = 1\n", "bad.toml:1:2: unknown section [fault]; the sections are cluster, "},
    {"[[sparse]]\ndim = 8\n", "unknown section [sparse]"},
    {"[cluster]\nserver = 1\n", "bad.toml:2:1: unknown key cluster.server; did you mean cluster.servers?"},
    {"[sync]\n  stalenes = 1\n", "bad.toml:2:3: unknown key sync.stalenes; did you mean sync.staleness?"},
    {"[train]\nlearning_rate = 1\n", "unknown key train.learning_rate; did you mean optimizer.learning_rate?"},
    {"[sync]\ncolour = 1\n", "unknown key sync.colour; the keys of [sync] are mode, staleness"},
    {"workers = 2\n", "bad.toml:1:1: unknown key workers outside any section; did you mean cluster.workers?"},
    {"\"cluster.workers\" = 2\n", "unknown key cluster.workers outside any section"},
    {"[Cluster]\nworkers = 2\n", "unknown section [Cluster]; did you mean [cluster]?"},
    {"[cluster.extra]\nworkers = 2\n", "unknown key cluster.extra"},
    {"\"a\\u0007\\nb\" = 1\n", "unknown key a??b outside any section"},
    // Types.
    {"[cluster]\nservers = \"2\"\n",
     "bad.toml:2:11: cluster.servers: found the string \"2\", expected an integer from 1 to 1024"},
    {"[cluster]\nservers = 2.0\n", "found the number 2.0, expected an integer"},
    {"[cluster]\nservers = true\n", "found true, expected an integer"},
    {"[cluster]\nservers = [2]\n", "found a list, expected an integer"},
    {"[cluster.servers]\nx = 2\n", "cluster.servers: found a table, expected an integer"},
    {"[train]\nseed = 1979-05-27\n", "found a date or time, expected an integer"},
    {"[optimizer]\nlearning_rate = \"fast\"\n", "found the string \"fast\", expected a number above 0 to 1000"},
    {"[optimizer]\nnesterov = 1\n", "found the integer 1, expected true or false"},
    {"[sync]\nmode = 3\n", "found the integer 3, expected one of bsp, ssp, asp, allreduce, none"},
    {"[data]\ndir = 3\n", "data.dir: found the integer 3, expected a string: a path"},
    {"[model]\nhidden = 1024\n", "found the integer 1024, expected a list of integers"},
    {"[model]\nhidden = [1024, \"a\"]\n", "bad.toml:2:17: model.hidden: found the string \"a\""},
    {"[model]\nhidden = [1024, 1.5]\n", "found the number 1.5, expected a list of integers"},
    {"[optimizer]\nweight_decay = 1\nno_decay = \"*.bias\"\n", "expected a list of strings"},
    {"[optimizer]\nweight_decay = 1\nno_decay = [1]\n", "found the integer 1, expected a list of strings"},
    {"cluster = 3\n", "bad.toml:1:1: cluster: found the integer 3, expected a section: [cluster]"},
    {"[[cluster]]\nservers = 3\n", "cluster: found a list, expected a section"},
    // Bounds.
    {"[cluster]\nworkers = 0\n", "bad.toml:2:11: cluster.workers: found 0, expected an integer from 1 to 1024"},
    {"[cluster]\nservers = 0\n", "cluster.servers: found 0, expected"},
    {"[cluster]\nservers = -3\n", "cluster.servers: found -3, expected"},
    {"[cluster]\ndata_port = 65536\n", "cluster.data_port: found 65536, expected an integer from 0 to 65535"},
    {"[server]\nslice_bytes = 100\n", "found 100, expected an integer from 64 to 67108864, a multiple of 64 (bytes)"},
    {"[train]\nbatch_size = 0\n", "train.batch_size: found 0"},
    {"[train]\nbatch_size = -1\n", "train.batch_size: found -1"},
    {"[train]\nepochs = -1\n", "train.epochs: found -1"},
    {"[train]\nmax_seconds = nan\n", "train.max_seconds: found nan, expected a number from 0"},
    {"[train]\nmax_seconds = inf\n", "train.max_seconds: found inf, expected a number from 0"},
    {"[train]\ntarget_accuracy = 97\n", "train.target_accuracy: found 97.0, expected a number from 0 to 1"},
    {"[optimizer]\nlearning_rate = 0\n", "found 0.0, expected a number above 0"},
    {"[optimizer]\nlearning_rate = -0.0\n", "found 0.0, expected a number above 0"},
    {"[optimizer]\nmomentum = 1\n", "found 1.0, expected a number from 0 to below 1"},
    {"[cluster]\nheartbeat_interval = 0\n", "found 0.0, expected a number from 0.01 to 60 (s)"},
    {"[model]\nhidden = [1024, 0]\n", "model.hidden: found 0, expected a list of integers from 1 to 65536"},
    {"[sync]\nmode = \"bps\"\n",
     "bad.toml:2:8: sync.mode: found \"bps\", expected one of bsp, ssp, asp, allreduce, none; did "
     "you mean bsp?"},
    {"[sync]\nmode = \"BSP\"\n", "sync.mode: found \"BSP\", expected one of"},
    {"[worker]\ndevice = \"cuda\"\n", "found \"cuda\", expected auto, cpu or cuda:N"},
    {"[cluster]\ncoordinator = \"tcp://a:1\"\n", "found \"tcp://a:1\", expected HOST:PORT"},
    {"[cluster]\ncoordinator = \"0.0.0.0:7070\"\n", "expected an address that peers can connect to"},
    {"[cluster]\nbind = \"*\"\n", "cluster.bind: found \"*\", expected a host name, an IPv4 address"},
    {"[cluster]\nadvertise = \"::\"\n", "expected an address that peers can connect to"},
    {"[cluster]\njob = \"a\\nb\"\n", "found \"a?b\", expected a text without control characters"},
    {"[data]\ndir = \"\"\n", "data.dir: found \"\", expected a text that is not empty"},
    // Not TOML, and keys that come twice.
    {"[cluster\n", "bad.toml:1:9: not valid TOML: "},
    {"[[[a]]]\n", "bad.toml:1:3: not valid TOML: expected bare key starting character"},
    {"[[=", "not valid TOML: "},
    {"[cluster]\nservers = \n", "bad.toml:2:"},
    {"[cluster]\nservers = 99999999999999999999\n", "not valid TOML: "},
    {"[cluster]\njob = \"a\n", "not valid TOML: "},
    {"\xff\xfe", "not valid TOML: "},
    {"[cluster]\nservers = 1\nservers = 1\n", "bad.toml:3:11: given twice: cannot redefine existing integer 'servers'"},
    {"[cluster]\n[cluster]\n", "bad.toml:2:1: given twice: cannot redefine existing table 'cluster'"},
    {"cluster.servers = 1\n[cluster]\nservers = 2\n", "given twice: "},
    {"", "bad.toml: the config file holds no key"},
    {"# only a comment\n", "bad.toml: the config file holds no key"},
    // Keys that do not go together.
    {"[debug]\nslow_rank = 2\n", "debug.slow_rank = 2 (bad.toml:2): no such rank with cluster.workers = 2 (default)"},
    {"[cluster]\nheartbeat_interval = 2\nheartbeat_timeout = 4\n",
     "cluster.heartbeat_timeout = 4.0 (bad.toml:3): expected more than twice "
     "cluster.heartbeat_interval = 2.0 (bad.toml:2)"},
    {"[cluster]\ndata_port = 65530\n[server]\nshards = 7\n",
     "cluster.data_port = 65530 (bad.toml:2): the last of server.shards = 7 (bad.toml:4) would "
     "have a port above 65535"},
    {"[cluster]\nworkers = 1024\n[train]\nbatch_size = 1048576\n", "a step takes 1073741824 samples, expected at most"},
    {"[optimizer]\nnesterov = true\n",
     "optimizer.nesterov = true (bad.toml:2): needs a momentum above 0, found optimizer.momentum = "
     "0.0 (default)"},
    {"[optimizer]\nschedule = \"cosine\"\nfinal_learning_rate = 0.1\n",
     "optimizer.final_learning_rate = 0.1 (bad.toml:3): expected at most optimizer.learning_rate = "
     "0.05 (default)"},
};

TEST(ConfigBadInput, Files) {
  for (const BadFile& bad : kBadFiles) {
    const std::string fault = fault_of_file(bad.toml);
    EXPECT_NE(fault.find(bad.message), std::string::npos)
        << "file:\n"
        << bad.toml << "\nexpected: " << bad.message << "\nfound:    " << fault;
    EXPECT_EQ(std::count(fault.begin(), fault.end(), '\n'), 0) << fault;
  }
}

struct BadLine {
  std::vector<std::string> arguments;
  const char* message;
};

const BadLine kBadLines[] = {
    {{"--clutser.workers", "3"}, "unknown flag --clutser.workers; did you mean --cluster.workers?"},
    {{"--workers=3"}, "unknown flag --workers; did you mean --cluster.workers?"},
    {{"--seed", "3"}, "unknown flag --seed; did you mean --train.seed?"},
    {{"--output-dri", "x"}, "unknown flag --output-dri; did you mean --output-dir?"},
    {{"--sparse.dim", "3"}, "unknown flag --sparse.dim; the sections are"},
    {{"-r", "3"}, "unknown flag -r;"},
    {{"configs/mnist.toml"}, "unexpected argument \"configs/mnist.toml\"; flags are written --name VALUE"},
    {{"--cluster.workers"}, "--cluster.workers: needs a value"},
    {{"--cluster.workers", "--rank", "1"}, "--cluster.workers: needs a value, found the flag --rank"},
    {{"--cluster.workers", "2", "--cluster.workers", "3"}, "--cluster.workers: given twice (\"2\", then \"3\")"},
    {{"--cluster.workers=2", "--cluster.workers=2"}, "--cluster.workers: given twice"},
    {{"--device", "cpu", "--worker.device", "cpu"}, "--worker.device: given twice"},
    {{"--cluster.workers", "two"}, "--cluster.workers: found \"two\", expected an integer from 1 to 1024"},
    {{"--cluster.workers", "2.0"}, "found \"2.0\", expected an integer"},
    {{"--cluster.workers", "2x"}, "found \"2x\", expected an integer"},
    {{"--cluster.workers="}, "--cluster.workers: found \"\", expected an integer"},
    {{"--cluster.workers", "99999999999999999999"}, "expected an integer from 1 to 1024"},
    {{"--cluster.workers", "0"}, "--cluster.workers: found 0, expected an integer from 1 to 1024"},
    {{"--optimizer.learning_rate", "nan"}, "--optimizer.learning_rate: found nan, expected a number"},
    {{"--optimizer.learning_rate", "-1"}, "--optimizer.learning_rate: found -1.0, expected"},
    {{"--optimizer.learning_rate", "1e999"}, "found \"1e999\", expected a number"},
    {{"--optimizer.nesterov", "yes"}, "--optimizer.nesterov: found \"yes\", expected true or false"},
    {{"--model.hidden", "1,,2"}, "--model.hidden: found \"1,,2\", expected a list of integers"},
    {{"--model.hidden", "1,0"}, "--model.hidden: found 0, expected a list of integers from 1"},
    {{"--sync.mode", "bps"},
     "--sync.mode: found \"bps\", expected one of bsp, ssp, asp, allreduce, none; did you mean "
     "bsp?"},
    {{"--device", "gpu"}, "--worker.device: found \"gpu\", expected auto, cpu or cuda:N"},
    {{"--rank", "x"}, "--rank: found \"x\", expected an integer from 0"},
    {{"--rank", "-1"}, "--rank: found \"-1\", expected an integer from 0"},
    {{"--rank", "2"}, "--rank: found 2, expected an integer from 0 to 1: the job has 2 workers"},
    {{"--rank", "1", "--sync.mode", "none"}, "--rank: found 1, expected an integer from 0 to 0: the job has 1 worker"},
    {{"--start-count", "-1"}, "--start-count: found \"-1\""},
    {{"--progress-fd", "stdout"}, "--progress-fd: found \"stdout\""},
    {{"--output-dir="}, "--output-dir: found \"\", expected a path"},
    {{"--config="}, "--config: found \"\", expected a path"},
    {{"--insecure=false"}, "--insecure: takes no value"},
    {{"--print-config", "--check-config"}, "--check-config: cannot go together with --print-config"},
    {{"--config", "/no/such/file.toml"}, "/no/such/file.toml: cannot read the config file: No such file or directory"},
    {{"--config", "/"}, "/: cannot read the config file: Is a directory"},
    {{"--config", "/dev/null"}, "/dev/null: the config file holds no key"},
    {{"--config", "/dev/zero"}, "/dev/zero: cannot read the config file: it is larger than 1048576 bytes"},
    // Flags without effect.
    {{"--sync.staleness", "3"},
     "--sync.staleness: has no effect here: it counts only with sync.mode = ssp, and sync.mode = "
     "\"bsp\" (default)"},
    {{"--config", "configs/mnist.toml", "--model.hidden", "3"},
     "--model.hidden: has no effect here: it counts only with model.type = mlp, and model.type = "
     "\"lenet5\" (configs/mnist.toml:17)"},
    {{"--cluster.servers", "3", "--sync.mode", "allreduce"}, "--cluster.servers: has no effect here"},
    {{"--server.slice_bytes", "64", "--sync.mode", "none"}, "--server.slice_bytes: has no effect here"},
    {{"--train.batch_size", "3", "--train.global_batch", "8"},
     "--train.batch_size: has no effect here: it counts only with train.global_batch = 0, and "
     "train.global_batch = 8"},
    {{"--optimizer.beta1", "0.5"}, "--optimizer.beta1: has no effect here"},
    {{"--debug.slow_factor", "2"}, "--debug.slow_factor: has no effect here"},
    // Safe by default.
    {{"--cluster.bind", "0.0.0.0"}, "cluster.bind = \"0.0.0.0\" (--cluster.bind): other hosts can reach it"},
    {{"--config", "configs/two-machines.toml"}, "cluster.bind = \"0.0.0.0\" (configs/two-machines.toml:"},
};

TEST(ConfigBadInput, CommandLines) {
  for (const BadLine& bad : kBadLines) {
    std::string shown;
    for (const std::string& argument : bad.arguments) shown += argument + " ";
    const std::string fault = fault_of_line(bad.arguments);
    EXPECT_NE(fault.find(bad.message), std::string::npos)
        << shown << "\nexpected: " << bad.message << "\nfound:    " << fault;
    EXPECT_EQ(std::count(fault.begin(), fault.end(), '\n'), 0) << fault;
  }
}

TEST(ConfigBadInput, Servers) {
  EXPECT_NE(fault_of_line({"--device", "cpu"}, Role::server).find("unknown flag --device"), std::string::npos);
  EXPECT_NE(fault_of_line({"--rank", "2"}, Role::server).find("the job has 2 servers"), std::string::npos);
  EXPECT_NE(fault_of_line({"--sync.mode", "none"}, Role::server).find("nothing to serve"), std::string::npos);
}

TEST(ConfigBadInput, AllFaultsAreToldFromTopToBottom) {
  const std::string fault = fault_of_file("[train]\nepochs = -1\nsede = 1\n[cluster]\nworkers = \"x\"\n[zoo]\n");
  EXPECT_EQ(fault.substr(0, fault.find(' ')), "bad.toml:2:10:");
  EXPECT_EQ(std::count(fault.begin(), fault.end(), '\n'), 3);
  EXPECT_LT(fault.find("bad.toml:3:1: unknown key train.sede"), fault.find("bad.toml:5:11: "));
  EXPECT_LT(fault.find("bad.toml:5:11: "), fault.find("bad.toml:6:2: unknown section [zoo]"));
}

TEST(ConfigBadInput, OfVeryManyFaultsTheFirstAreTold) {
  std::string toml;
  for (int i = 0; i < 50; ++i) toml += "[zoo" + std::to_string(i) + "]\n";
  const std::string fault = fault_of_file(toml);
  EXPECT_EQ(std::count(fault.begin(), fault.end(), '\n'), 20);
  EXPECT_TRUE(fault.ends_with("\nand 30 more"));
}

TEST(ConfigBadInput, FlagsAndFileAreCheckedInOneGo) {
  const std::string fault = fault_of_line({"--config", "/no/such/file.toml", "--rank", "x"});
  EXPECT_NE(fault.find("--rank: "), std::string::npos);
  EXPECT_NE(fault.find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace parley
