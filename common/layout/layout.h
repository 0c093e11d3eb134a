// The layout of a model: its tensors in arena order, and the slices that the arena is cut into. Every process computes
// it from the same tensor list and compares the fingerprint at registration.
//
// Invariants
//  1. Order is the reverse of registration, so that gradients that backward finishes first lie together; parameters of
//     one group stay together (groups in order of their first tensor in arena order), buffers come last.
//  2. Every tensor starts on a 64-byte boundary. The padding between tensors belongs to no tensor and is never read
//     as a value; it is zero.
//  3. A slice is a range of the arena of at most `slice_bytes`, starts on a 64-byte boundary, and never crosses a
//     parameter group nor mixes parameters with buffers. A tensor larger than that spans several slices.
//  4. An empty tensor (a zero in its shape) has no bytes and is in no slice.
//
// A Layout is immutable after construction and may be read from any thread.
#pragma once

#include "common/base/types.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley {

inline constexpr std::uint64_t kTensorAlignmentBytes = 64;

// float32 is the only element type so far; the number is fixed on the wire.
enum class ElementType : std::uint8_t { float32 = 0 };
inline constexpr std::uint64_t element_bytes(ElementType) { return 4; }
const char* element_type_name(ElementType type);

// Buffers (BatchNorm statistics and the like) are carried like parameters, but a value replaces the old one instead of
// being applied by the optimizer.
enum class TensorKind : std::uint8_t { parameter = 0, buffer = 1 };

struct TensorSpec {
  std::string name;                 // the module's own name, unique in the layout
  std::vector<std::int64_t> shape;  // empty: a scalar (0-dim), one element
  ElementType type = ElementType::float32;
  TensorKind kind = TensorKind::parameter;
  std::uint32_t group = 0;  // parameter group: which weight decay and learning-rate scale apply

  // Product of the shape; 1 for a scalar.
  std::uint64_t element_count() const;
  bool operator==(const TensorSpec&) const = default;
};

// "float32[256, 84]": how a tensor's type and shape are shown to people.
std::string describe(const TensorSpec& tensor);

// Where a tensor lies in the arena.
struct TensorPlace {
  std::uint64_t offset = 0;  // elements from the start of the arena
  std::uint64_t count = 0;   // elements
};

// The part of one tensor that lies in one slice.
struct SlicePart {
  std::uint32_t tensor = 0;  // index into Layout::tensors()
  std::uint64_t begin = 0;   // elements from the start of the slice
  std::uint64_t count = 0;   // elements
};

struct Slice {
  std::uint64_t offset = 0;  // elements from the start of the arena
  std::uint64_t count = 0;   // elements, padding included
  std::uint32_t group = 0;
  TensorKind kind = TensorKind::parameter;
  std::vector<SlicePart> parts;  // in arena order

  std::uint64_t bytes() const { return count * sizeof(float); }
};

class Layout {
 public:
  // `registered`: the module's tensors in order of registration. Throws UsageError for a duplicate or empty name, a
  // negative dimension, a tensor type that is not float32, or sizes that overflow; slice_bytes must be a positive
  // multiple of 64 (checked).
  Layout(const std::vector<TensorSpec>& registered, std::uint64_t slice_bytes);

  // In arena order (the reverse of registration within a group).
  std::span<const TensorSpec> tensors() const { return tensors_; }
  const TensorSpec& tensor(std::uint32_t index) const { return tensors_[index]; }
  const TensorPlace& place(std::uint32_t index) const { return places_[index]; }
  std::span<const Slice> slices() const { return slices_; }
  const Slice& slice(SliceId id) const { return slices_[id.value]; }
  std::size_t slice_count() const { return slices_.size(); }
  // Elements of the whole arena, padding included.
  std::uint64_t arena_count() const { return arena_count_; }
  // Elements of all tensors, without padding.
  std::uint64_t value_count() const { return value_count_; }
  std::uint64_t slice_bytes() const { return slice_bytes_; }
  // Index of the tensor with this name.
  std::optional<std::uint32_t> find(const std::string& name) const;
  // Hash (xxh64) over tensors and slice size: equal exactly where the layout is equal.
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  void place_tensors();
  void cut_slices();

  std::uint64_t slice_bytes_;
  std::vector<TensorSpec> tensors_;
  std::vector<TensorPlace> places_;
  std::vector<Slice> slices_;
  std::uint64_t arena_count_ = 0;
  std::uint64_t value_count_ = 0;
  std::uint64_t fingerprint_ = 0;
};

// One line that names the first tensor in which the two differ, with both shapes; nothing where they are equal.
std::optional<std::string> first_difference(std::span<const TensorSpec> ours, const std::string& our_name,
                                            std::span<const TensorSpec> theirs, const std::string& their_name);

}  // namespace parley
