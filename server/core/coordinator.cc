#include "server/core/coordinator.h"

#include "common/base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace parley {

namespace {

constexpr std::size_t kRefusedRoutesMax = 64;

// What a peer calls itself, fit for a log line.
std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text.substr(0, 64);
}

}  // namespace

Coordinator::Coordinator(const CoordinatorOptions& options)
    : options_(options), roster_(options.servers, options.workers) {}

Header Coordinator::header() {
  ++sequence_;
  return {options_.job, Generation(1), Role::server, Rank(0), Incarnation(0), Clock(), sequence_};
}

void Coordinator::receive(Route route, const Incoming& message, Instant now, Out& out) {
  if (const auto refusal = refuse(message, options_.job))
    return out.send(route, compose_error(header(), refusal->fault, refusal->text));
  const Header from = message.header();
  if (over_) return out.send(route, shutdown());
  if (message.type() == wire::Body::Register) return register_process(route, message, now, out);
  RosterEntry* entry = roster_.find(from.role, from.rank, from.incarnation);
  if (entry == nullptr) {
    out.send(route, compose_error(header(), wire::Fault::ended,
                                  fmt::format("{} with incarnation {} does not take part in this job",
                                              sender_name(from), from.incarnation)));
    return;
  }
  // A new connection is introduced by Register with the process's life; whoever speaks on another is a stranger.
  if (entry->route != route) return;
  entry->last_heard = now;
  entry->unreachable_since.reset();
  switch (message.type()) {
    case wire::Body::Heartbeat:
      if (message.body<wire::Heartbeat>()->epoch() < epoch_) out.send(route, membership(from.role));
      return;
    case wire::Body::Finished:
      entry->finished = true;
      return advance(now, out);
    case wire::Body::RequestStop:
      if (from.clock >= stop_clock_) return;
      stop_clock_ = from.clock;
      return announce(out);
    case wire::Body::Done:
      entry->done = unpack_stats(message.body<wire::Done>()->stats());
      return advance(now, out);
    case wire::Body::NextBlock:
      return next_block(route, from.rank, message, out);
    case wire::Body::StoreSet:
      return store_set(message, out);
    case wire::Body::StoreGet: {
      const std::string key = message.body<wire::StoreGet>()->key()->str();
      if (const auto* value = store_.get(key, {from.role, from.rank})) send_value(key, *value, route, out);
      return;
    }
    case wire::Body::Error: {
      const auto* text = message.body<wire::Error>()->text();
      return end(false, fmt::format("{}: {}", sender_name(from), text == nullptr ? "failed" : text->c_str()), out);
    }
    default:
      return;
  }
}

void Coordinator::register_process(Route route, const Incoming& message, Instant now, Out& out) {
  const auto& body = *message.body<wire::Register>();
  const Header from = message.header();
  // One process asking twice gets the same answer twice.
  for (auto& [key, entry] : roster_.entries()) {
    if (key.first != from.role || entry.life != body.life()) continue;
    if (from.sequence < entry.registered) return;
    entry.registered = from.sequence;
    entry.route = route;
    entry.last_heard = now;
    entry.unreachable_since.reset();
    return welcome(route, key, entry, out);
  }
  const auto rank = body.has_rank() ? std::optional(from.rank) : roster_.free_rank(from.role);
  const std::string host = body.host() == nullptr ? "?" : printable(body.host()->str());
  const std::string name =
      rank ? fmt::format("{} {}", role_name(from.role), *rank) : fmt::format("a further {}", role_name(from.role));
  if (const auto reason = refuse_rank(body, from.role, rank)) {
    last_refusal_ = fmt::format("{} ({}, pid {}) was refused: {}", name, host, body.pid(), *reason);
    // Once a connection: a stranger fills neither the log nor the memory.
    if (refused_routes_.size() < kRefusedRoutesMax && refused_routes_.insert(route).second)
      log::warning("{}", last_refusal_);
    return out.send(route, compose_error(header(), wire::Fault::refused, *reason));
  }
  if (const auto reason = mismatch(body, from.role, name)) {
    out.send(route, compose_error(header(), wire::Fault::refused, *reason));
    if (phase_ == wire::Phase::gathering) end(false, *reason, out);  // nobody can tell whose is the wrong one
    return;
  }
  const Roster::Key key{from.role, *rank};
  RosterEntry& entry = roster_.enter(key, body.start_count());
  entry.route = route;
  entry.registered = from.sequence;
  entry.life = body.life();
  entry.host = host;
  entry.pid = body.pid();
  entry.last_heard = now;
  for (std::uint32_t i = 0; body.endpoints() != nullptr && i < body.endpoints()->size(); ++i)
    entry.endpoints.push_back(body.endpoints()->Get(i)->str());
  log::info("{} registered ({}, pid {}){}", name, host, entry.pid,
            roster_.everybody_is_here() ? "; everybody is here" : "; waiting for " + roster_.missing());
  welcome(route, key, entry, out);
  advance(now, out);
}

std::optional<std::string> Coordinator::refuse_rank(const wire::Register& body, Role role, std::optional<Rank> rank) {
  if (!rank)
    return fmt::format("all {} {}s of this job are registered already", roster_.expected(role), role_name(role));
  if (rank->value >= roster_.expected(role))
    return fmt::format("{} {}: this job has {} {}s (ranks 0 to {})", role_name(role), *rank, roster_.expected(role),
                       role_name(role), roster_.expected(role) - 1);
  if (const RosterEntry* holder = roster_.find({role, *rank}))
    return fmt::format("rank {} already registered: {} {} lives on {} as pid {}", *rank, role_name(role), *rank,
                       holder->host, holder->pid);
  if (phase_ != wire::Phase::gathering) return "the job runs already";
  if (body.host() == nullptr) return "a registration names its host";
  return std::nullopt;
}

std::optional<std::string> Coordinator::mismatch(const wire::Register& body, Role role, const std::string& name) {
  if (auto difference = first_difference(options_.config, "server 0", unpack_entries(body.config()), name))
    return difference;
  if (role != Role::worker) return std::nullopt;
  auto model = model_of(body, name);
  if (!model) return model.error().message;
  if (model_) return first_difference(*model_, *model);
  model_ = std::move(*model);
  return std::nullopt;
}

void Coordinator::welcome(Route route, Roster::Key key, const RosterEntry& entry, Out& out) {
  wire::WelcomeT body;
  body.rank = key.second.value;
  body.incarnation = entry.incarnation.value;
  out.send(route, compose(header(), std::move(body)));
  if (epoch_ > 0) out.send(route, membership(key.first));
}

// Moves to the next phase where everybody has got that far.
void Coordinator::advance(Instant now, Out& out) {
  const wire::Phase before = phase_;
  if (phase_ == wire::Phase::gathering && roster_.everybody_is_here()) {
    phase_ = wire::Phase::running;
    if (options_.blocks) {
      BlockDispenserOptions blocks = *options_.blocks;
      blocks.samples = model_->samples;
      blocks_.emplace(blocks);
    }
  }
  const bool all_finished = std::ranges::all_of(
      roster_.entries(), [](const auto& item) { return item.first.first != Role::worker || item.second.finished; });
  if (phase_ == wire::Phase::running && all_finished) phase_ = wire::Phase::all_finished;
  if (phase_ == wire::Phase::all_finished && all_done(Role::worker)) {
    phase_ = wire::Phase::closing;
    closing_since_ = now;
  }
  if (phase_ == wire::Phase::closing && all_done(Role::server)) return end(true, "every worker has finished", out);
  if (phase_ != before) announce(out);
}

bool Coordinator::all_done(Role role) const {
  return std::ranges::all_of(
      roster_.entries(), [role](const auto& item) { return item.first.first != role || item.second.done.has_value(); });
}

void Coordinator::next_block(Route route, Rank worker, const Incoming& message, Out& out) {
  if (!blocks_) return;
  const auto& request = *message.body<wire::NextBlock>();
  std::optional<Block> completed;
  if (request.has_finished()) completed = Block{request.epoch(), request.begin(), request.end()};
  const auto block = blocks_->next(worker, completed);
  wire::BlockT body;
  body.answers = message.header().sequence.value;
  body.exhausted = !block;
  if (block) {
    body.epoch = block->epoch;
    body.begin = block->begin;
    body.end = block->end;
  }
  out.send(route, compose(header(), std::move(body)));
}

void Coordinator::store_set(const Incoming& message, Out& out) {
  const auto& body = *message.body<wire::StoreSet>();
  const std::string key = body.key()->str();
  std::vector<std::uint8_t> value;
  if (body.value() != nullptr) value.assign(body.value()->begin(), body.value()->end());
  const auto result = store_.set(key, value);
  if (!result.stored) return end(false, fmt::format("the rendezvous store is full at key '{}'", key), out);
  for (const auto& reader : result.waiting)
    if (const RosterEntry* entry = roster_.find(reader)) send_value(key, value, entry->route, out);
}

void Coordinator::send_value(const std::string& key, const std::vector<std::uint8_t>& value, Route to, Out& out) {
  wire::StoreValueT body;
  body.key = key;
  body.value = value;
  out.send(to, compose(header(), std::move(body)));
}

void Coordinator::announce(Out& out) {
  ++epoch_;
  for (const auto& [key, entry] : roster_.entries()) out.send(entry.route, membership(key.first));
}

Outgoing Coordinator::membership(Role to) {
  wire::MembershipT body;
  body.epoch = epoch_;
  body.phase = phase_;
  body.stop_clock = stop_clock_.value;
  for (const auto& [key, entry] : roster_.entries()) {
    auto member = std::make_unique<wire::MemberStateT>();
    member->role = static_cast<std::uint8_t>(key.first);
    member->rank = key.second.value;
    member->incarnation = entry.incarnation.value;
    member->finished = entry.finished;
    body.members.push_back(std::move(member));
    if (key.first == Role::server)
      body.shards.insert(body.shards.end(), entry.endpoints.begin(), entry.endpoints.end());
  }
  if (to == Role::server && model_) {
    body.layout = pack_layout(model_->tensors, model_->slice_bytes, model_->fingerprint);
    body.samples = model_->samples;
  }
  return compose(header(), std::move(body));
}

void Coordinator::unreachable(Route route, Instant now) {
  const auto key = roster_.find(route);
  if (!key) return;
  RosterEntry& entry = *roster_.find(*key);
  if (!entry.unreachable_since) entry.unreachable_since = now;
}

void Coordinator::tick(Instant now, Out& out) {
  if (over_) return;
  if (phase_ == wire::Phase::gathering && now >= started_ + options_.start_timeout)
    return end(false,
               fmt::format("start: {} missing after {:.1f} s{}", roster_.missing(), to_seconds(options_.start_timeout),
                           last_refusal_.empty() ? "" : " (" + last_refusal_ + ")"),
               out);
  if (phase_ == wire::Phase::closing && now >= closing_since_ + options_.close_timeout)
    return end(false, fmt::format("{} did not end within {:.1f} s", waiting_for(), to_seconds(options_.close_timeout)),
               out);
  check_lives(now, out);
  if (over_ || now < next_heartbeat_) return;
  next_heartbeat_ = now + options_.heartbeat_interval;
  for (const auto& [key, entry] : roster_.entries()) out.send(entry.route, compose(header(), wire::HeartbeatT()));
}

void Coordinator::check_lives(Instant now, Out& out) {
  for (const auto& [key, entry] : roster_.entries()) {
    std::string how;
    if (entry.unreachable_since && now >= *entry.unreachable_since + options_.reconnect_grace)
      how = "its connection closed";
    else if (now >= entry.last_heard + options_.heartbeat_timeout)
      how = fmt::format("silent for {:.1f} s", to_seconds(options_.heartbeat_timeout));
    if (how.empty()) continue;
    const std::string text =
        fmt::format("{} {} ({}, pid {}) is lost: {}", role_name(key.first), key.second, entry.host, entry.pid, how);
    if (phase_ != wire::Phase::gathering) return end(false, text, out);
    log::warning("{}; its place is free again", text);
    roster_.remove(key);
    return forget_model_without_worker();
  }
}

// The model stays the one to compare with while a worker that brought it is here.
void Coordinator::forget_model_without_worker() {
  const auto worker =
      std::ranges::find(roster_.entries(), Role::worker, [](const auto& item) { return item.first.first; });
  if (worker == roster_.entries().end())
    model_.reset();
  else if (model_)
    model_->from = fmt::format("worker {}", worker->first.second);
}

Instant Coordinator::next_deadline() const {
  if (over_) return kNever;
  Instant next = next_heartbeat_;
  if (phase_ == wire::Phase::gathering) next = std::min(next, started_ + options_.start_timeout);
  return next;
}

std::string Coordinator::waiting_for() const {
  if (phase_ == wire::Phase::gathering) return roster_.missing();
  std::string text;
  for (const auto& [key, entry] : roster_.entries()) {
    const bool waits = phase_ == wire::Phase::running        ? key.first == Role::worker && !entry.finished
                       : phase_ == wire::Phase::all_finished ? key.first == Role::worker && !entry.done
                                                             : !entry.done;
    if (waits) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", role_name(key.first), key.second);
  }
  return text;
}

void Coordinator::end(bool ok, const std::string& reason, Out& out) {
  over_ = End{ok, reason};
  for (const auto& [key, entry] : roster_.entries()) out.send(entry.route, shutdown());
}

Outgoing Coordinator::shutdown() {
  wire::ShutdownT body;
  body.ok = over_->ok;
  body.reason = over_->reason;
  for (const auto& [key, entry] : roster_.entries()) {
    auto process = std::make_unique<wire::ProcessStatsT>();
    process->role = static_cast<std::uint8_t>(key.first);
    process->rank = key.second.value;
    if (entry.done) process->stats = pack_stats(*entry.done);
    body.processes.push_back(std::move(process));
  }
  return compose(header(), std::move(body));
}

}  // namespace parley
