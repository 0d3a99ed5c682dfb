// pause: the process that keeps a pod sandbox's namespaces. It reaps the orphans of a shared PID namespace
// and ends at SIGTERM or SIGINT. It is static, since its image has no other file.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

int main() {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGTERM);
  sigaddset(&wanted, SIGINT);
  sigaddset(&wanted, SIGCHLD);
  // Blocks the signals, so that they wait for sigwaitinfo: process 1 has no default actions.
  if (sigprocmask(SIG_BLOCK, &wanted, nullptr) != 0) return 1;
  while (true) {
    const int signal_number = sigwaitinfo(&wanted, nullptr);
    if (signal_number == SIGTERM || signal_number == SIGINT) return 0;
    if (signal_number < 0 && errno != EINTR) return 1;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}
