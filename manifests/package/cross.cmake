# Toolchain of a cross build with the packages of sysroot.sh: -DRAILHEAD_SYSROOT=DIRECTORY. Programs that the build runs (protoc,
# gRPC's plugin) are this machine's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(RAILHEAD_SYSROOT "" CACHE PATH "Directory that manifests/package/sysroot.sh prints")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RAILHEAD_SYSROOT)
set(CMAKE_SYSROOT ${RAILHEAD_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# The C library of the sysroot, which has Debian's security fixes: the compiler has one of its own, and prefers it.
set(CMAKE_EXE_LINKER_FLAGS_INIT -B${RAILHEAD_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${RAILHEAD_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${RAILHEAD_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${RAILHEAD_SYSROOT}/usr/share/pkgconfig)
