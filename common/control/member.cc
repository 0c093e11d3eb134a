#include "common/control/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace parley {
namespace {

std::string text_of(const flatbuffers::String* text) { return text == nullptr ? std::string() : text->str(); }

std::vector<std::byte> bytes_of(const flatbuffers::Vector<std::uint8_t>* bytes) {
  std::vector<std::byte> copy;
  if (bytes != nullptr)
    for (const std::uint8_t byte : *bytes) copy.push_back(std::byte{byte});
  return copy;
}

}  // namespace

Header Member::header(Clock clock) {
  ++sequence_;
  return {options_.job, Generation(1), options_.role, rank_, incarnation_, clock, sequence_};
}

void Member::start(Instant now, Out& out) {
  started_ = true;
  deadline_ = now + options_.connect_timeout;
  send_register(out);
}

void Member::send_register(Out& out) {
  wire::RegisterT body;
  body.has_rank = options_.rank.has_value();
  body.start_count = options_.start_count;
  body.host = options_.host;
  body.pid = options_.pid;
  body.life = options_.life;
  body.endpoints = options_.endpoints;
  if (options_.role == Role::worker)
    body.layout = pack_layout(options_.tensors, options_.slice_bytes,
                              Layout(options_.tensors, options_.slice_bytes).fingerprint());
  body.samples = options_.samples;
  body.config = pack_entries(options_.config);
  Header from = header();
  if (options_.rank) from.rank = *options_.rank;
  out.push_back(compose(from, std::move(body)));
}

void Member::receive(const Incoming& message, Instant now, Out& out) {
  if (over_) return;
  if (const auto refusal = refuse(message, options_.job))
    return end(fmt::format("the coordinator at {}: {}", options_.coordinator, refusal->text));
  if (welcomed()) deadline_ = now + options_.heartbeat_timeout;
  switch (message.type()) {
    case wire::Body::Welcome:
      return welcome(message, now, out);
    case wire::Body::Membership:
      return take_membership(*message.body<wire::Membership>());
    case wire::Body::Shutdown:
      return take_shutdown(*message.body<wire::Shutdown>());
    case wire::Body::Error:
      return end(text_of(message.body<wire::Error>()->text()));
    case wire::Body::Block: {
      const auto* body = message.body<wire::Block>();
      if (!block_request_ || body->answers() != block_request_->sequence.value) return;
      block_request_.reset();
      block_.emplace();
      if (!body->exhausted()) *block_ = BlockRange{body->epoch(), body->begin(), body->end()};
      return;
    }
    case wire::Body::StoreValue: {
      const auto* body = message.body<wire::StoreValue>();
      if (gets_.erase(body->key()->str()) > 0) values_[body->key()->str()] = bytes_of(body->value());
      return;
    }
    default:
      return;  // a heartbeat has done its work above
  }
}

void Member::welcome(const Incoming& message, Instant now, Out& out) {
  if (welcomed()) return;
  const auto* body = message.body<wire::Welcome>();
  rank_ = Rank(body->rank());
  incarnation_ = Incarnation(body->incarnation());
  deadline_ = now + options_.heartbeat_timeout;
  next_heartbeat_ = now;
  tick(now, out);
}

void Member::take_membership(const wire::Membership& body) {
  if (body.epoch() <= membership_.epoch) return;
  membership_.epoch = body.epoch();
  membership_.phase = body.phase();
  membership_.stop_clock = Clock(body.stop_clock());
  membership_.workers.clear();
  for (std::uint32_t i = 0; body.members() != nullptr && i < body.members()->size(); ++i) {
    const wire::MemberState& member = *body.members()->Get(i);
    if (member.role() == static_cast<std::uint8_t>(Role::worker))
      membership_.workers[Rank(member.rank())] = Incarnation(member.incarnation());
  }
  if (body.shards() != nullptr) {
    membership_.shards.clear();
    for (const auto* endpoint : *body.shards()) membership_.shards.push_back(text_of(endpoint));
  }
  if (body.layout() == nullptr) return;
  auto tensors = unpack_tensors(*body.layout());
  if (!tensors) return end(fmt::format("the coordinator's layout: {}", tensors.error().message));
  membership_.tensors = std::move(*tensors);
  membership_.slice_bytes = body.layout()->slice_bytes();
  membership_.samples = body.samples();
}

void Member::take_shutdown(const wire::Shutdown& body) {
  JobEnd job_end;
  job_end.ok = body.ok();
  job_end.reason = text_of(body.reason());
  for (std::uint32_t i = 0; body.processes() != nullptr && i < body.processes()->size(); ++i) {
    const wire::ProcessStats& process = *body.processes()->Get(i);
    job_end.processes.push_back(
        {static_cast<Role>(process.role()), Rank(process.rank()), unpack_stats(process.stats())});
  }
  over_ = std::move(job_end);
}

void Member::end(std::string reason) {
  if (!over_) over_ = JobEnd{false, std::move(reason), {}};
}

void Member::reconnected(Instant now, Out& out) {
  if (over_ || !started_) return;
  send_register(out);  // tells the coordinator that this connection is ours: only we know our life
  if (!welcomed()) return;
  next_heartbeat_ = now;
  tick(now, out);
  if (finished_) out.push_back(compose(header(*finished_), wire::FinishedT()));
  if (stop_) out.push_back(compose(header(*stop_), wire::RequestStopT()));
  if (done_) done(*done_, out);
  if (block_request_) send_block_request(out);
  for (const auto& [key, value] : std::map(sets_)) store_set(key, value, out);
  for (const auto& key : std::set(gets_)) store_get(key, out);
}

void Member::tick(Instant now, Out& out) {
  if (over_ || !started_) return;
  if (now >= deadline_) {
    const Duration limit = welcomed() ? options_.heartbeat_timeout : options_.connect_timeout;
    return end(welcomed() ? fmt::format("the coordinator (server 0 at {}) is lost: silent for {:.1f} s",
                                        options_.coordinator, to_seconds(limit))
                          : fmt::format("the coordinator (server 0 at {}) is unreachable: no answer within {:.1f} s{}",
                                        options_.coordinator, to_seconds(limit),
                                        connect_failure_.empty() ? "" : " (" + connect_failure_ + ")"));
  }
  if (now < next_heartbeat_) return;
  next_heartbeat_ = now + options_.heartbeat_interval;
  wire::HeartbeatT body;
  body.epoch = membership_.epoch;
  out.push_back(compose(header(), std::move(body)));
}

Instant Member::next_deadline() const {
  if (over_ || !started_) return kNever;
  return std::min(deadline_, next_heartbeat_);
}

void Member::finished(Clock clock, Out& out) {
  finished_ = clock;
  out.push_back(compose(header(clock), wire::FinishedT()));
}

void Member::request_stop(Clock clock, Out& out) {
  stop_ = clock;
  out.push_back(compose(header(clock), wire::RequestStopT()));
}

void Member::done(Stats stats, Out& out) {
  done_ = std::move(stats);
  wire::DoneT body;
  body.stats = pack_stats(*done_);
  out.push_back(compose(header(), std::move(body)));
}

void Member::fail(wire::Fault fault, const std::string& text, Out& out) {
  out.push_back(compose_error(header(), fault, text));
}

void Member::next_block(const std::optional<BlockRange>& completed, Out& out) {
  block_request_ = BlockRequest{completed, Sequence()};
  send_block_request(out);
}

void Member::send_block_request(Out& out) {
  wire::NextBlockT body;
  if (block_request_->completed) {
    body.has_finished = true;
    body.epoch = block_request_->completed->epoch;
    body.begin = block_request_->completed->begin;
    body.end = block_request_->completed->end;
  }
  out.push_back(compose(header(), std::move(body)));
  block_request_->sequence = sequence_;
}

void Member::store_set(const std::string& key, std::span<const std::byte> value, Out& out) {
  sets_[key].assign(value.begin(), value.end());
  wire::StoreSetT body;
  body.key = key;
  for (const std::byte byte : value) body.value.push_back(std::to_integer<std::uint8_t>(byte));
  out.push_back(compose(header(), std::move(body)));
}

void Member::store_get(const std::string& key, Out& out) {
  gets_.insert(key);
  wire::StoreGetT body;
  body.key = key;
  out.push_back(compose(header(), std::move(body)));
}

std::optional<std::optional<BlockRange>> Member::take_block() { return std::exchange(block_, std::nullopt); }

std::optional<std::vector<std::byte>> Member::take_value(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  auto value = std::move(found->second);
  values_.erase(found);
  return value;
}

}  // namespace parley
