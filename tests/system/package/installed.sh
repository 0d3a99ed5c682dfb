# shellcheck shell=bash
# installed.sh - Railhead as its package installs it, for scripts in a guest with systemd (run-guest.sh -I) that
# has the .deb in /mnt/package:
#
#   package_install            by dpkg; what it depends on, the guest has
#   package_tools PROGRAM...   PATH has these of the build tree, which are no part of Railhead, and no others
#   package_log FILE [LINE...] railheadd.service writes its log there, and has these lines, too
readonly UNIT=railheadd.service

package_install() { dpkg --force-depends,bad-path -i /mnt/package/*.deb; }
package_tools() {
    local program
    mkdir -p /run/tools || return
    for program in "$@"; do ln -sf "$BUILD/bin/$program" /run/tools/ || return; done
    export PATH=/run/tools:/usr/sbin:/usr/bin:/sbin:/bin
}
package_log() {
    mkdir -p "/run/systemd/system/$UNIT.d" || return
    printf '%s\n' '[Service]' "StandardOutput=append:$1" "StandardError=append:$1" "${@:2}" >"/run/systemd/system/$UNIT.d/test.conf"
    systemctl daemon-reload
}
