#include "server/core/reply_batch.h"

#include <algorithm>
#include <utility>

namespace parley {

void ReplyBatch::add(Route route, const wire::SliceWeights& entry, Frame weights) {
  auto found = std::ranges::find(replies_, route, &Reply::route);
  if (found == replies_.end()) found = replies_.insert(replies_.end(), Reply{route, {}, {}});
  found->entries.push_back(entry);
  found->frames.push_back(std::move(weights));
}

void ReplyBatch::flush(Header header, Outbox<Route>& out) {
  for (Reply& reply : replies_) {
    wire::WeightsT body;
    body.slices = std::move(reply.entries);
    Outgoing message = compose(header, std::move(body));
    message.payload = std::move(reply.frames);
    out.send(reply.route, std::move(message));
  }
  replies_.clear();
}

}  // namespace parley
