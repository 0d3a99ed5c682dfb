// RunRailheadd: the whole program railheadd, from its command line to its exit status (see --help).
//
// Serves until SIGTERM or SIGINT, or lists, reconciles or shows timings once. Logs on standard error.
// Exit status: 0 stopped by a signal, or done; 1 a failure while running; 2 wrong command line; 3 the
// configuration is missing or wrong.
// Threads: once per process, on its first thread.
#pragma once

namespace railhead::daemon {

int RunRailheadd(int argc, char** argv);

}  // namespace railhead::daemon
