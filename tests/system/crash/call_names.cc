#include <sys/syscall.h>

#include <algorithm>
#include <iterator>

#include "tests/system/crash/tracer.h"

namespace railhead::crash {
namespace {

struct Named {
  int number;
  const char* name;
};

#define RAILHEAD_CALL(name) \
  Named {                   \
    SYS_##name, #name       \
  }

// The system calls that plugins and their libraries make.
constexpr Named kNamed[] = {
    RAILHEAD_CALL(read),          RAILHEAD_CALL(write),        RAILHEAD_CALL(close),
    RAILHEAD_CALL(fstat),         RAILHEAD_CALL(poll),         RAILHEAD_CALL(lseek),
    RAILHEAD_CALL(mmap),          RAILHEAD_CALL(mprotect),     RAILHEAD_CALL(munmap),
    RAILHEAD_CALL(brk),           RAILHEAD_CALL(rt_sigaction), RAILHEAD_CALL(rt_sigprocmask),
    RAILHEAD_CALL(ioctl),         RAILHEAD_CALL(pread64),      RAILHEAD_CALL(pwrite64),
    RAILHEAD_CALL(readv),         RAILHEAD_CALL(writev),       RAILHEAD_CALL(pipe2),
    RAILHEAD_CALL(madvise),       RAILHEAD_CALL(dup2),         RAILHEAD_CALL(nanosleep),
    RAILHEAD_CALL(getpid),        RAILHEAD_CALL(socket),       RAILHEAD_CALL(connect),
    RAILHEAD_CALL(sendto),        RAILHEAD_CALL(recvfrom),     RAILHEAD_CALL(sendmsg),
    RAILHEAD_CALL(recvmsg),       RAILHEAD_CALL(bind),         RAILHEAD_CALL(getsockname),
    RAILHEAD_CALL(setsockopt),    RAILHEAD_CALL(getsockopt),   RAILHEAD_CALL(clone),
    RAILHEAD_CALL(clone3),        RAILHEAD_CALL(fork),         RAILHEAD_CALL(vfork),
    RAILHEAD_CALL(execve),        RAILHEAD_CALL(exit),         RAILHEAD_CALL(wait4),
    RAILHEAD_CALL(waitid),        RAILHEAD_CALL(kill),         RAILHEAD_CALL(fcntl),
    RAILHEAD_CALL(flock),         RAILHEAD_CALL(fsync),        RAILHEAD_CALL(fdatasync),
    RAILHEAD_CALL(ftruncate),     RAILHEAD_CALL(getcwd),       RAILHEAD_CALL(rename),
    RAILHEAD_CALL(renameat),      RAILHEAD_CALL(renameat2),    RAILHEAD_CALL(mkdir),
    RAILHEAD_CALL(mkdirat),       RAILHEAD_CALL(rmdir),        RAILHEAD_CALL(link),
    RAILHEAD_CALL(linkat),        RAILHEAD_CALL(unlink),       RAILHEAD_CALL(unlinkat),
    RAILHEAD_CALL(symlink),       RAILHEAD_CALL(symlinkat),    RAILHEAD_CALL(readlink),
    RAILHEAD_CALL(readlinkat),    RAILHEAD_CALL(chmod),        RAILHEAD_CALL(fchmod),
    RAILHEAD_CALL(umask),         RAILHEAD_CALL(getuid),       RAILHEAD_CALL(geteuid),
    RAILHEAD_CALL(getppid),       RAILHEAD_CALL(fstatfs),      RAILHEAD_CALL(statfs),
    RAILHEAD_CALL(prctl),         RAILHEAD_CALL(arch_prctl),   RAILHEAD_CALL(mount),
    RAILHEAD_CALL(umount2),       RAILHEAD_CALL(gettid),       RAILHEAD_CALL(futex),
    RAILHEAD_CALL(getdents64),    RAILHEAD_CALL(exit_group),   RAILHEAD_CALL(set_tid_address),
    RAILHEAD_CALL(tgkill),        RAILHEAD_CALL(openat),       RAILHEAD_CALL(newfstatat),
    RAILHEAD_CALL(unshare),       RAILHEAD_CALL(ppoll),        RAILHEAD_CALL(set_robust_list),
    RAILHEAD_CALL(msync),         RAILHEAD_CALL(setns),        RAILHEAD_CALL(getrandom),
    RAILHEAD_CALL(prlimit64),     RAILHEAD_CALL(memfd_create), RAILHEAD_CALL(statx),
    RAILHEAD_CALL(rseq),          RAILHEAD_CALL(fchdir),       RAILHEAD_CALL(clock_nanosleep),
    RAILHEAD_CALL(clock_gettime), RAILHEAD_CALL(access),       RAILHEAD_CALL(faccessat),
    RAILHEAD_CALL(open),          RAILHEAD_CALL(stat),         RAILHEAD_CALL(lstat),
    RAILHEAD_CALL(listen),
};

#undef RAILHEAD_CALL

constexpr int kLooking[] = {
    SYS_read,
    SYS_close,
    SYS_fstat,
    SYS_poll,
    SYS_lseek,
    SYS_mmap,
    SYS_mprotect,
    SYS_munmap,
    SYS_brk,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_pread64,
    SYS_readv,
    SYS_pipe2,
    SYS_madvise,
    SYS_dup2,
    SYS_nanosleep,
    SYS_getpid,
    SYS_socket,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_getsockname,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_fcntl,
    SYS_getcwd,
    SYS_readlink,
    SYS_readlinkat,
    SYS_umask,
    SYS_getuid,
    SYS_geteuid,
    SYS_getppid,
    SYS_fstatfs,
    SYS_statfs,
    SYS_prctl,
    SYS_arch_prctl,
    SYS_gettid,
    SYS_futex,
    SYS_getdents64,
    SYS_set_tid_address,
    SYS_newfstatat,
    SYS_ppoll,
    SYS_prlimit64,
    SYS_getrandom,
    SYS_set_robust_list,
    SYS_statx,
    SYS_rseq,
    SYS_access,
    SYS_clock_nanosleep,
    SYS_faccessat,
    SYS_stat,
    SYS_lstat,
    SYS_clock_gettime,
};

}  // namespace

bool OnlyLooks(int number) {
  return std::find(std::begin(kLooking), std::end(kLooking), number) != std::end(kLooking);
}

std::string NameOfCall(int number) {
  const auto* const found = std::find_if(std::begin(kNamed), std::end(kNamed),
                                         [&](const Named& named) { return named.number == number; });
  return found == std::end(kNamed) ? "call " + std::to_string(number) : found->name;
}

}  // namespace railhead::crash
