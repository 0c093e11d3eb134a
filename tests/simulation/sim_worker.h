// A worker in the simulator: Member, ParameterClient and a stand-in for the trainer that pushes slices one by one in
// random groups while answers to others come in already, as backward does.
#pragma once

#include "common/base/random.h"
#include "common/control/member.h"
#include "common/layout/arena.h"
#include "common/layout/placement.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/link.h"
#include "tests/simulation/reference.h"
#include "tests/simulation/scenario.h"
#include "worker/core/parameter_client.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace parley::simulation {

inline constexpr JobId kJob{77};

class SimWorker {
 public:
  SimWorker(const Scenario& scenario, const Layout& layout, const Placement& placement, const Reference* reference,
            EventQueue& events, RandomStream& random, Rank rank);

  void connect(Link* control, std::vector<Link*> shards) {
    control_ = control;
    shards_ = std::move(shards);
  }
  void start();
  void receive_control(const Incoming& message);
  void control_reconnected();
  void receive(ShardId from, Incoming message);
  void reconnected(ShardId shard);
  void tick();

  bool over() const { return member_.over().has_value(); }
  const std::optional<JobEnd>& end() const { return member_.over(); }
  Rank rank() const { return rank_; }
  const ParameterClient* client() const { return client_.get(); }
  // Final values of a tensor, pulled after all had finished.
  std::vector<float> final_values(std::uint32_t tensor) const;
  std::string state() const;

 private:
  void advance();
  void begin_step();
  void push_some(Clock clock, std::vector<SliceId> rest);
  void fill_gradient(SliceId id, Clock clock);
  void check_weights(Clock clock) const;
  void send(ParameterClient::Out& out);
  void send_control(Member::Out& out);
  Duration compute_time();

  const Scenario& scenario_;
  const Layout& layout_;
  const Placement& placement_;
  const Reference* reference_;  // bsp only
  EventQueue& events_;
  RandomStream& random_;
  const Rank rank_;
  Member member_;
  FloatBlock half0_;
  FloatBlock half1_;
  FloatBlock gradient_memory_;
  const ParameterArena parameters_;
  const GradientArena gradients_;
  std::unique_ptr<ParameterClient> client_;
  Link* control_ = nullptr;
  std::vector<Link*> shards_;
  enum class Stage { registering, training, stepping, finishing, final_pull, done } stage_ = Stage::registering;
  bool stop_asked_ = false;
};

}  // namespace parley::simulation
