#include "tests/support/fake_worker/plan.h"

#include "common/base/error.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <string_view>

namespace parley {
namespace {

using Numbers = std::vector<std::int64_t>;

// One table of the file, read key by key; done() refuses what nobody asked for.
class Reader {
 public:
  Reader(const toml::table& table, std::string where) : table_(table), where_(std::move(where)) {}

  template <class Value>
  std::optional<Value> take(std::string_view key) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->value<Value>();
    if (!value) throw UsageError(fmt::format("{}: '{}' has the wrong type", where_, key));
    return value;
  }

  std::optional<Numbers> take_numbers(std::string_view key) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    const toml::array* array = node->as_array();
    if (array == nullptr) throw UsageError(fmt::format("{}: '{}' is not a list", where_, key));
    Numbers numbers;
    for (const toml::node& item : *array) {
      const auto number = item.value<std::int64_t>();
      if (!number) throw UsageError(fmt::format("{}: '{}' is not a list of integers", where_, key));
      numbers.push_back(*number);
    }
    return numbers;
  }

  const toml::node* find(std::string_view key) {
    known_.emplace_back(key);
    return table_.get(key);
  }

  // A number, or the word "hash" (nothing).
  std::optional<double> number_or_hash(std::string_view key, double otherwise) {
    const toml::node* node = find(key);
    if (node == nullptr) return otherwise;
    if (const auto word = node->value<std::string_view>(); word && *word == "hash") return std::nullopt;
    if (const auto number = node->value<double>()) return number;
    throw UsageError(fmt::format("{}: '{}' is neither a number nor \"hash\"", where_, key));
  }

  void done() const {
    for (const auto& [key, value] : table_)
      if (std::ranges::find(known_, key.str()) == known_.end())
        throw UsageError(fmt::format("{}: unknown key '{}'", where_, key.str()));
  }

 private:
  const toml::table& table_;
  const std::string where_;
  std::vector<std::string> known_;
};

bool lists(const Numbers& numbers, std::uint64_t number) {
  return numbers.empty() || std::ranges::find(numbers, static_cast<std::int64_t>(number)) != numbers.end();
}

std::uint64_t by_rank(const Numbers& numbers, Rank rank) {
  return static_cast<std::uint64_t>(numbers[std::min<std::size_t>(rank.value, numbers.size() - 1)]);
}

void add_tensors(const toml::table& table, const std::string& path, std::vector<FakeTensor>& tensors) {
  Reader reader(table, path + ": [[tensor]]");
  FakeTensor tensor;
  tensor.spec.name = reader.take<std::string>("name").value_or("");
  tensor.spec.shape = reader.take_numbers("shape").value_or(Numbers{});
  tensor.spec.group = static_cast<std::uint32_t>(reader.take<std::int64_t>("group").value_or(0));
  const std::string kind = reader.take<std::string>("kind").value_or("parameter");
  if (kind != "parameter" && kind != "buffer") throw UsageError(fmt::format("{}: unknown kind '{}'", path, kind));
  tensor.spec.kind = kind == "buffer" ? TensorKind::buffer : TensorKind::parameter;
  tensor.initial = reader.number_or_hash("initial", 0);
  const auto ranks = reader.take_numbers("absent_ranks");
  const auto clocks = reader.take_numbers("absent_clocks");
  tensor.sometimes_absent = ranks || clocks;
  tensor.absent_ranks = ranks.value_or(Numbers{});
  tensor.absent_clocks = clocks.value_or(Numbers{});
  const auto repeat = reader.take<std::int64_t>("repeat");
  reader.done();
  for (std::int64_t index = 0; index < repeat.value_or(1); ++index) {
    tensors.push_back(tensor);
    if (repeat) tensors.back().spec.name += fmt::format(".{}", index);
  }
}

}  // namespace

bool FakeTensor::absent(Rank rank, Clock clock) const {
  return sometimes_absent && lists(absent_ranks, rank.value) && lists(absent_clocks, clock.value);
}

std::vector<TensorSpec> FakePlan::specs() const {
  std::vector<TensorSpec> list;
  for (const FakeTensor& tensor : tensors) list.push_back(tensor.spec);
  return list;
}

std::uint64_t FakePlan::steps_of(Rank rank) const { return by_rank(steps, rank); }
std::uint64_t FakePlan::samples_of(Rank rank) const { return by_rank(samples, rank); }

FakePlan read_plan(const std::string& path) {
  toml::table file;
  try {
    file = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    throw UsageError(fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
  Reader reader(file, path);
  FakePlan plan;
  plan.steps = reader.take_numbers("steps").value_or(plan.steps);
  plan.samples = reader.take_numbers("samples").value_or(plan.samples);
  if (plan.steps.empty() || plan.samples.empty()) throw UsageError(path + ": 'steps' or 'samples' is empty");
  plan.step_ms = reader.take<double>("step_ms").value_or(plan.step_ms);
  plan.dataset = reader.take<std::int64_t>("dataset").value_or(plan.dataset);
  const std::string gradient = reader.take<std::string>("gradient").value_or("hash");
  const double value = reader.take<double>("gradient_value").value_or(1);
  if (gradient == "constant")
    plan.constant = value;
  else if (gradient != "hash")
    throw UsageError(fmt::format("{}: unknown gradient '{}'", path, gradient));
  plan.stop_at = reader.take<std::int64_t>("stop_at");
  if (const toml::node* node = reader.find("nan"); node != nullptr && node->is_table()) {
    Reader nan(*node->as_table(), path + ": nan");
    plan.nan = {nan.take<std::int64_t>("rank").value_or(0), nan.take<std::int64_t>("clock").value_or(0),
                nan.take<std::string>("tensor").value_or("")};
    nan.done();
  }
  if (const toml::node* node = reader.find("hold"); node != nullptr && node->is_table()) {
    Reader hold(*node->as_table(), path + ": hold");
    plan.hold = {hold.take<std::int64_t>("clock").value_or(0), hold.take<std::string>("file").value_or("")};
    hold.done();
  }
  if (const toml::node* node = reader.find("tensor"); node != nullptr && node->is_array_of_tables())
    for (const toml::node& tensor : *node->as_array()) add_tensors(*tensor.as_table(), path, plan.tensors);
  reader.done();
  return plan;
}

}  // namespace parley
