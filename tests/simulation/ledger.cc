#include "tests/simulation/ledger.h"

#include <fmt/format.h>

#include <algorithm>

namespace parley::simulation {

Ledger::Ledger(SyncPolicy sync, std::uint32_t workers, std::size_t slices)
    : sync_(sync), workers_(workers), pushed_(slices, std::vector<std::set<Clock>>(workers)) {}

void Ledger::arrived(ShardId shard, const Incoming& message) {
  const Header from = message.header();
  if (message.type() == wire::Body::Finished) {
    ended_[{shard, from.rank}] = from.clock;
    for (auto& ranks : pushed_) std::erase_if(ranks[from.rank.value], [&](Clock clock) { return clock >= from.clock; });
  }
  if (message.type() == wire::Body::Pull) asked_[{from.rank, from.sequence.value}] = {from.clock, false};
  const auto* push = message.body<wire::PushPull>();
  if (push == nullptr || push->slices() == nullptr) return;
  asked_[{from.rank, from.sequence.value}] = {from.clock, true};
  for (std::uint32_t i = 0; i < push->slices()->size(); ++i)
    pushed_[push->slices()->Get(i)->slice()][from.rank.value].insert(from.clock);
}

void Ledger::leaves(ShardId shard, const Outgoing& message, Rank to) {
  const auto* body = wire::GetMessage(message.header.bytes().data())->body_as_Weights();
  if (body == nullptr || body->slices() == nullptr) return;
  for (std::uint32_t i = 0; i < body->slices()->size(); ++i) {
    const wire::SliceWeights& entry = *body->slices()->Get(i);
    const auto found = asked_.find({to, entry.answers()});
    if (found == asked_.end())
      throw Violation(
          fmt::format("shard {} answers sequence {} of worker {}, which never arrived", shard, entry.answers(), to));
    const auto& ranks = pushed_[entry.slice()];
    std::uint64_t distinct = 0;
    std::uint64_t deepest = 0;
    for (const auto& clocks : ranks) {
      distinct += clocks.size();
      deepest = std::max<std::uint64_t>(deepest, clocks.size());
    }
    const std::uint64_t most = sync_.gathers() ? deepest : distinct;
    if (entry.version() > most)
      throw Violation(fmt::format("slice {} has version {} after {} pushes: one was applied twice", entry.slice(),
                                  entry.version(), most));
    if (!found->second.push) continue;
    ++answers_checked_;
    const Clock asked = found->second.clock;
    if (entry.version() < ranks[to.value].size())
      throw Violation(fmt::format("slice {} version {} does not hold worker {}'s own {} pushes", entry.slice(),
                                  entry.version(), to, ranks[to.value].size()));
    for (std::uint32_t rank = 0; rank < workers_; ++rank) {
      const auto end = ended_.find({shard, Rank(rank)});
      const Clock pushed(ranks[rank].size());
      if (end != ended_.end() && pushed >= end->second) continue;
      if (pushed <= asked && asked.value - pushed.value >= sync_.staleness)
        throw Violation(fmt::format(
            "slice {}: clock {} of worker {} is answered while worker {} has pushed {} clocks (staleness {})",
            entry.slice(), asked, to, rank, pushed, sync_.staleness));
    }
    if (entry.lead() > sync_.staleness)
      throw Violation(fmt::format("slice {}: an answer claims a lead of {} over a bound of {}", entry.slice(),
                                  entry.lead(), sync_.staleness));
  }
}

std::uint64_t Ledger::pushes(SliceId slice) const {
  std::uint64_t distinct = 0;
  for (const auto& clocks : pushed_[slice.value]) distinct += clocks.size();
  return distinct;
}

}  // namespace parley::simulation
