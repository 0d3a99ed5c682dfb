# shellcheck shell=bash
# guest_lib.sh - for scripts of the benchmarks that run in a guest: . "$SRC/bench/guest_lib.sh"
#
# measure ARG...: bench/measure.py, by the Python of the build tree (guest_python.sh).
measure() {
    LD_LIBRARY_PATH=$BUILD/python/lib PYTHONHOME=$BUILD/python "$BUILD/python/python3" -B "$SRC/bench/measure.py" "$@"
}
