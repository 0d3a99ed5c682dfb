// RunRailctl: the whole program railctl, the operator's command, from its command line to its exit status
// (see --help). Threads: once per process, on its first thread.
#pragma once

namespace railhead::railctl {

int RunRailctl(int argc, char** argv);

}  // namespace railhead::railctl
