// What this program was built from and what it runs on, for reports.
#pragma once

#include "common/observe/run_report.h"

#include <map>
#include <string>

namespace parley {

// Version, commit and compiler come from the build, the CPU's name from the system. The caller knows the libraries that
// it loads, and its config.
Provenance provenance(std::map<std::string, std::string> libraries, std::string config_hash);

}  // namespace parley
