#include "common/base/log.h"

#include <glog/logging.h>

#include <cstdlib>
#include <mutex>
#include <ostream>
#include <time.h>

namespace parley::log {
namespace {

std::mutex who_mutex;
std::string who_name;

std::string current_who() {
  const std::lock_guard lock(who_mutex);
  return who_name;
}

google::LogSeverity severity(Level level) {
  switch (level) {
    case Level::info:
      return google::GLOG_INFO;
    case Level::warning:
      return google::GLOG_WARNING;
    case Level::error:
      return google::GLOG_ERROR;
  }
  return google::GLOG_ERROR;
}

}  // namespace

void start(std::string_view who) {
  rename(who);
  // Before there are threads: the C library sets up the time zone at the first log line otherwise, behind a lock that
  // ThreadSanitizer cannot see.
  tzset();
  FLAGS_logtostderr = true;
  if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("parley");
}

void rename(std::string_view who) {
  const std::lock_guard lock(who_mutex);
  who_name = who;
}

void set_threshold(Level level) { FLAGS_minloglevel = severity(level); }

void flush() { google::FlushLogFiles(google::GLOG_INFO); }

void write(Level level, std::string_view text, const char* file, int line) {
  const std::string who = current_who();
  google::LogMessage message(file, line, severity(level));  // its destructor writes the line
  std::ostream& stream = message.stream();
  if (!who.empty()) stream << who << ": ";
  stream << text;
}

void fatal(std::string_view text, const char* file, int line) {
  write(Level::error, text, file, line);
  flush();
  std::abort();
}

}  // namespace parley::log
