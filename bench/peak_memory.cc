// peak_memory FILE PROGRAM [ARG...]: runs the program with this one's input, output and environment. It
// appends the program's peak resident memory in KiB to FILE, as one line. If the largest child's is larger,
// it writes that.
//
// A program of its own, since the kernel counts the memory of a process before execve as the new program's
// (setmax_mm_hiwater_rss in fs/exec.c). The result is therefore never below the memory of the spawning
// process, which has to be small.
// Exit status: the program's; 125 when it could not be run.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

extern char** environ;  // NOLINT(readability-redundant-declaration): not every libc declares it

int main(int argc, char** argv) {
  constexpr int kCannot = 125;
  if (argc < 3) return kCannot;
  pid_t pid = 0;
  if (posix_spawn(&pid, argv[2], nullptr, nullptr, argv + 2, environ) != 0) return kCannot;
  int status = 0;
  rusage usage{};
  while (wait4(pid, &status, 0, &usage) < 0) {
    if (errno != EINTR) return kCannot;
  }
  const int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || dprintf(fd, "%ld\n", usage.ru_maxrss) < 0 || close(fd) != 0) return kCannot;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kCannot;
}
