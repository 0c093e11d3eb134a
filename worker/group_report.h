// The summary of a whole run from what every worker hands in at its end.
#pragma once

#include "common/config/config.h"
#include "common/control/member.h"
#include "common/observe/provenance.h"
#include "common/observe/run_report.h"
#include "worker/training/trainer.h"

#include <map>
#include <string>

namespace parley {

// What one worker hands in: times, bytes, staleness, and a part of its digest.
Stats worker_stats(const TrainerResult& result, const std::string& weights_digest);

// Throws RunError naming the ranks where not all workers ended with the same weights.
void check_same_weights(const JobEnd& end);

// Bytes and staleness over all workers, time shares as their mean, the rest as the reporting rank 0 saw it.
RunReport group_report(const Config& config, const TrainerResult& own, const JobEnd& end,
                       const std::string& weights_digest, const Provenance& provenance);

// Name -> version of the libraries that are loaded.
std::map<std::string, std::string> library_versions();

}  // namespace parley
