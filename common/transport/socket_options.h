// What every socket of ours is set to, once, before it binds or connects; used by the sockets of this folder only.
#pragma once

#include "common/base/instant.h"

#include <cstdint>

namespace parley {

void set_option(void* socket, int option, int value);
void set_option(void* socket, int option, std::int64_t value);

// No high-water marks (the protocol bounds what is outstanding), no frame above limits::kFrameBytesMax, TCP keep-alive,
// and no peer that holds a connection without completing its handshake.
void set_common_options(void* socket);

// Closes `socket`; what is unsent goes on in the background for at most `linger`.
void close_socket(void* socket, Duration linger);

}  // namespace parley
