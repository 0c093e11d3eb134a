// Answers that leave in one step of a shard, gathered so that slices for the same connection travel in one message.
#pragma once

#include "common/wire/frame.h"
#include "common/wire/message.h"
#include "common/wire/outbox.h"

#include <vector>

namespace parley {

class ReplyBatch {
 public:
  void add(Route route, const wire::SliceWeights& entry, Frame weights);
  // Sends all that was added, in order of first use of a route, and is empty again.
  void flush(Header header, Outbox<Route>& out);

 private:
  struct Reply {
    Route route;
    std::vector<wire::SliceWeights> entries;
    std::vector<Frame> frames;
  };
  std::vector<Reply> replies_;
};

}  // namespace parley
