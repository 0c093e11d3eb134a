// The ranks are threads, or processes where one of them is to die; loopback, a store in shared memory.
#include "worker/collective/gloo_collective.h"

#include "common/base/error.h"
#include "tests/support/memory_collective.h"
#include "tests/support/shared_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace parley {
namespace {

using parley::testing::run_ranks;
using parley::testing::SharedStore;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

GlooOptions options(std::uint32_t rank, std::uint32_t world, Duration timeout = std::chrono::seconds(20)) {
  GlooOptions o;
  o.rank = Rank(rank);
  o.world_size = world;
  o.key_prefix = "job/0/";
  o.timeout = timeout;
  return o;
}

// Values whose sum depends on the order of its terms.
std::vector<float> values_of(std::uint32_t rank, std::size_t count) {
  std::vector<float> values(count);
  std::uint32_t state = 12345 + rank * 7919;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<std::int32_t>(state)) * 1e-7F;
  }
  return values;
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> all;
  for (const float value : values) all.push_back(std::bit_cast<std::uint32_t>(value));
  return all;
}

TEST(GlooCollective, TwoRanksGiveTheRankOrderSumBitForBit) {
  SharedStore store;
  run_ranks(2, [&](std::uint32_t rank) {
    GlooCollective gloo(options(rank, 2), store);
    EXPECT_EQ(gloo.rank(), Rank(rank));
    EXPECT_EQ(gloo.world_size(), 2U);
    for (const std::size_t count : {0UL, 1UL, 2UL, 3UL, 5UL, 1024UL, 1'000'003UL}) {
      std::vector<float> sum = values_of(rank, count);
      gloo.all_reduce(sum);
      std::vector<float> expected = values_of(0, count);
      const std::vector<float> other = values_of(1, count);
      for (std::size_t i = 0; i < count; ++i) expected[i] += other[i];
      EXPECT_EQ(bits(sum), bits(expected)) << count << " values";
    }
  });
}

TEST(GlooCollective, ThreeRanksAgreeOnEveryBit) {
  for (const std::size_t count : {0UL, 1UL, 2UL, 3UL, 7UL, 1'000'003UL}) {
    SharedStore store;
    std::array<std::vector<float>, 3> sums;
    run_ranks(3, [&](std::uint32_t rank) {
      GlooCollective gloo(options(rank, 3), store);
      sums[rank] = values_of(rank, count);
      gloo.all_reduce(sums[rank]);
      gloo.barrier();
    });
    EXPECT_EQ(bits(sums[0]), bits(sums[1])) << count;
    EXPECT_EQ(bits(sums[0]), bits(sums[2])) << count;
    const std::array terms{values_of(0, count), values_of(1, count), values_of(2, count)};
    for (std::size_t i = 0; i < count; ++i) {
      const double exact = double{terms[0][i]} + double{terms[1][i]} + double{terms[2][i]};
      ASSERT_NEAR(sums[0][i], exact, 1e-4) << i << " of " << count;
    }
  }
}

TEST(GlooCollective, BroadcastTakesAnyRootAndAnySize) {
  SharedStore store;
  run_ranks(3, [&](std::uint32_t rank) {
    GlooCollective gloo(options(rank, 3), store);
    for (std::uint32_t root = 0; root < 3; ++root) {
      for (const std::size_t count : {0UL, 1UL, 3UL, 1'000'003UL}) {
        std::vector<std::byte> bytes(count, static_cast<std::byte>(rank + 1));
        gloo.broadcast(bytes, Rank(root));
        EXPECT_EQ(bytes, std::vector<std::byte>(count, static_cast<std::byte>(root + 1)));
      }
    }
  });
}

TEST(GlooCollective, KeysCarryThePrefixOfJobAndGeneration) {
  SharedStore store;
  run_ranks(2, [&](std::uint32_t rank) { GlooCollective gloo(options(rank, 2), store); });
  EXPECT_FALSE(store.keys().empty());
  EXPECT_THAT(store.keys(), Each(StartsWith("job/0/")));
}

TEST(GlooCollective, AWorldOfOneNeedsNeitherStoreNorNetwork) {
  SharedStore store;
  GlooOptions alone = options(0, 1);
  alone.host = "no such host";
  GlooCollective gloo(alone, store);
  std::vector<float> values{1.5F, -2.0F};
  gloo.all_reduce(values);
  gloo.broadcast(std::as_writable_bytes(std::span(values)), Rank(0));
  gloo.barrier();
  EXPECT_EQ(values, (std::vector<float>{1.5F, -2.0F}));
  EXPECT_TRUE(store.keys().empty());
}

std::string refusal(const GlooOptions& o) {
  SharedStore store;
  try {
    GlooCollective gloo(o, store);
  } catch (const UsageError& error) {
    return fmt::format("usage: {}", error.what());
  } catch (const RunError& error) {
    return fmt::format("run: {}", error.what());
  }
  return "none";
}

TEST(GlooCollective, ARankThatNeverComesIsNamedInTime) {
  EXPECT_THAT(refusal(options(0, 2, std::chrono::milliseconds(50))),
              AllOf(StartsWith("run: worker 0"), HasSubstr("2 workers"), HasSubstr("waiting for worker 1")));
  EXPECT_THAT(refusal(options(1, 2, std::chrono::milliseconds(50))),
              AllOf(StartsWith("run: worker 1"), HasSubstr("waiting for worker 0")));
}

TEST(GlooCollective, AnAddressThatIsNotOursIsAUsageError) {
  for (const char* host : {"no-such-host.invalid", "0.0.0.0", "192.0.2.1"}) {
    GlooOptions o = options(0, 2);
    o.host = host;
    EXPECT_THAT(refusal(o), AllOf(StartsWith("usage: "), HasSubstr(host), HasSubstr("cluster."))) << host;
  }
}

TEST(GlooCollective, ARankThatLeftEndsTheOthersForGood) {
  SharedStore store;
  run_ranks(2, [&](std::uint32_t rank) {
    GlooCollective gloo(options(rank, 2, std::chrono::milliseconds(300)), store);
    if (rank == 1) return;  // Gone without a word: its sockets close.
    std::vector<float> values(10);
    std::string first;
    std::string second;
    try {
      gloo.all_reduce(values);
    } catch (const RunError& error) {
      first = error.what();
    }
    try {
      gloo.barrier();
    } catch (const RunError& error) {
      second = error.what();
    }
    EXPECT_THAT(first, AllOf(StartsWith("worker 0: all_reduce of 40 bytes failed after "),
                             HasSubstr("lost the connection to worker 1")));
    EXPECT_EQ(first, second);
  });
}

// Rank 1 waits for rank 0 alone, and rank 0 lives on; only its error can tell rank 1 that the group has ended.
TEST(GlooCollective, OneRanksErrorEndsThoseThatWaitForIt) {
  SharedStore store;
  std::array<std::unique_ptr<GlooCollective>, 3> members;
  run_ranks(3, [&](std::uint32_t rank) { members[rank] = std::make_unique<GlooCollective>(options(rank, 3), store); });
  members[2].reset();
  const auto started = std::chrono::steady_clock::now();
  run_ranks(2, [&](std::uint32_t rank) {
    std::vector<float> values(10);
    if (rank == 0) {
      EXPECT_THROW(members[0]->all_reduce(values), RunError);
    } else {
      const auto bytes = std::as_writable_bytes(std::span(values));
      EXPECT_THROW(members[1]->broadcast(bytes, Rank(0)), RunError);
    }
  });
  EXPECT_LT(to_seconds(std::chrono::steady_clock::now() - started), 10);
}

// Forks a rank that meets the others, all-reduces once, and then does `last`; what it writes is read by the parent.
struct Child {
  pid_t pid;
  int output;
};

template <class Last>
Child fork_rank(std::uint32_t rank, std::uint32_t world, SharedStore& store, Duration timeout, Last last) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    alarm(60);  // Whatever happens to the parent.
    std::string text;
    try {
      GlooCollective gloo(options(rank, world, timeout), store);
      std::vector<float> values{1};
      gloo.all_reduce(values);
      last(gloo);
      text = "no error";
    } catch (const std::exception& error) {
      text = error.what();
    }
    [[maybe_unused]] const auto written = write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

std::string output_of(const Child& child) {
  std::string text;
  std::array<char, 1024> piece{};
  for (ssize_t got; (got = read(child.output, piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(got));
  close(child.output);
  int status = 0;
  waitpid(child.pid, &status, 0);
  return text;
}

void all_reduce_for_ever(GlooCollective& gloo) {
  std::vector<float> values(100'000, 0.0F);
  for (;;) gloo.all_reduce(values);
}

TEST(GlooCollective, AKilledRankEndsTheOthersLongBeforeTheTimeout) {
  SharedStore store;
  const Duration timeout = std::chrono::seconds(50);
  const auto started = std::chrono::steady_clock::now();
  std::vector<Child> children;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    children.push_back(fork_rank(rank, 3, store, timeout, [rank](GlooCollective& gloo) {
      if (rank == 2) raise(SIGKILL);
      all_reduce_for_ever(gloo);
    }));
  }
  const std::string first = output_of(children[0]);
  const std::string second = output_of(children[1]);
  EXPECT_EQ(output_of(children[2]), "");
  EXPECT_LT(to_seconds(std::chrono::steady_clock::now() - started), 20);
  // The one that loses its peer first names it; the other may have lost both by then.
  EXPECT_THAT(first, StartsWith("worker 0: all_reduce of 400000 bytes failed after "));
  EXPECT_THAT(second, StartsWith("worker 1: all_reduce of 400000 bytes failed after "));
  EXPECT_THAT(first + second, HasSubstr("lost the connection to worker 2"));
}

TEST(GlooCollective, AStoppedRankEndsTheOthersAtTheTimeout) {
  SharedStore store;
  const Duration timeout = std::chrono::milliseconds(400);
  const Child stopped = fork_rank(1, 2, store, timeout, [](GlooCollective&) { raise(SIGSTOP); });
  const Child waiting = fork_rank(0, 2, store, timeout, all_reduce_for_ever);
  const std::string text = output_of(waiting);
  EXPECT_THAT(text, AllOf(StartsWith("worker 0: all_reduce"), HasSubstr("Timed out")));
  EXPECT_THAT(text, Not(HasSubstr("lost the connection")));
  kill(stopped.pid, SIGKILL);
  output_of(stopped);
}

}  // namespace
}  // namespace parley
