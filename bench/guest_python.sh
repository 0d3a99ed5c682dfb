#!/bin/bash
# guest_python.sh DIR - puts Debian's python3 of this machine into DIR, for guests of tests/support/vm, which have none: the
# program, its libraries but for the C library's, its modules. bench/guest_lib.sh runs it there.
set -eu
python=$(readlink -f /usr/bin/python3)
modules=$("$python" -Ic 'import sysconfig; print(sysconfig.get_path("stdlib"))')
rm -rf "$1"
mkdir -p "$1/lib"
ldd "$python" | awk '$3 ~ /^\// && $1 !~ /^lib[cm]\./ { print $3 }' | xargs cp -Lt "$1/lib"
tar -cC "${modules%/*}" --exclude={test,__pycache__,idlelib,lib2to3,ensurepip,pydoc_data,'config-*'} "${modules##*/}" | tar -xC "$1/lib"
cp "$python" "$1/python3" # last: it tells that all is there
