#include "worker/sync/slice_gate.h"

#include "common/base/error.h"

#include <gtest/gtest.h>

#include <thread>

namespace parley {
namespace {

const Layout& layout() {
  static const Layout shared({{.name = "a", .shape = {16}}, {.name = "b", .shape = {40}}}, 64);
  return shared;
}

TEST(SliceGate, WaitsForTheSliceAndHandsOverWhatWasWrittenBefore) {
  SliceGate gate(layout());
  const auto last = static_cast<std::uint32_t>(layout().slice_count() - 1);
  for (int step = 1; step <= 50; ++step) {
    gate.reset();
    EXPECT_FALSE(gate.all_ready());
    int value = 0;
    std::thread backward([&] {
      for (std::uint32_t slice = last + 1; slice-- > 0;) {
        if (slice == 0) value = step;
        gate.mark(SliceId(slice), std::vector<std::uint8_t>{1});
      }
    });
    EXPECT_EQ(gate.wait(SliceId(0))[0], 1);
    EXPECT_EQ(value, step);
    backward.join();
    EXPECT_TRUE(gate.all_ready());
  }
}

TEST(SliceGate, AllAbsentMarksEverySliceWithoutGradients) {
  SliceGate gate(layout());
  gate.mark(SliceId(1), std::vector<std::uint8_t>{1});
  gate.reset();
  gate.mark_all_absent();
  EXPECT_TRUE(gate.all_ready());
  EXPECT_EQ(gate.wait(SliceId(1))[0], 0);
}

TEST(SliceGate, AbandonEndsAWait) {
  SliceGate gate(layout());
  std::thread sender([&] { EXPECT_THROW(gate.wait(SliceId(0)), RunError); });
  gate.abandon();
  sender.join();
}

TEST(SliceGateDeathTest, ASliceIsMarkedOnceAStep) {
  SliceGate gate(layout());
  gate.mark(SliceId(0), std::vector<std::uint8_t>{1});
  EXPECT_DEATH(gate.mark(SliceId(0), std::vector<std::uint8_t>{1}), "marked ready twice");
}

}  // namespace
}  // namespace parley
