// Counter-based randomness: a value is a pure function of (seed, stream, counter), so what a rank draws at a clock does
// not depend on what ran before. The mixer is SplitMix64's finalizer (Steele, Lea, Flood, OOPSLA 2014).
#pragma once

#include <cstdint>
#include <limits>

namespace parley {

constexpr std::uint64_t mix64(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// A standard uniform random bit generator over one stream.
class RandomStream {
 public:
  using result_type = std::uint64_t;

  constexpr RandomStream(std::uint64_t seed, std::uint64_t stream)
      : key_(mix64(mix64(seed) ^ (stream * 0xd1342543de82ef95ULL))) {}

  constexpr result_type operator()() { return mix64(key_ + counter_++ * 0x9e3779b97f4a7c15ULL); }
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  // Uniform in [0, bound); bound > 0. Unbiased (Lemire, ACM TOMACS 2019), the same on every platform.
  constexpr std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>((*this)()) * bound;
    auto low = static_cast<std::uint64_t>(product);
    if (low < bound) {
      const std::uint64_t threshold = -bound % bound;
      while (low < threshold) {
        product = static_cast<Wide>((*this)()) * bound;
        low = static_cast<std::uint64_t>(product);
      }
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  // Uniform in [0, 1).
  constexpr double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace parley
