#!/bin/bash
# Runs in the guest, started by host.sh: systemd is process 1, /mnt/package holds railhead's .deb.
#
# The package is installed by dpkg and its unit started by systemd, sandbox and all: railheadd does all of its work
# in it, a system call that the unit does not list would kill it, and what the sandbox is there to prevent fails.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
KUBELET=/var/lib/kubelet/device-plugins
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
# shellcheck source=tests/system/package/installed.sh
. "$SRC/tests/system/package/installed.sh"
package_tools kubelet-standin cnidriver
readonly LOG=/var/log/railheadd.log

# ---- the host ----------------------------------------------------------------------------
node() {
    modprobe -a rdma_rxe ib_uverbs && make_vfs pf0 2 && mkdir -p "$KUBELET" /etc/cni/net.d || return
    kubelet-standin serve --dir "$KUBELET" >"$OUT/kubelet.log" 2>&1 &
    within 60 test -S "$KUBELET/control.sock"
}
# Quick rounds, and death at a system call that is not listed; but for clone3, which RestrictNamespaces answers with
# ENOSYS, as it is meant.
drop_in() {
    package_log "$LOG" ExecStart= 'ExecStart=/usr/bin/railheadd --resync-interval 86400 --reconcile-interval 1 --log-level debug --http-address 127.0.0.1:9917' \
        SystemCallErrorNumber=kill SystemCallFilter=clone3
}
is_state() { [ "$(systemctl is-active "$UNIT")" = "$1" ]; }
property() { systemctl show --value -p "$1" "$UNIT"; }
logged() { grep -q "$1" "$LOG"; }
get() { # PATH: of its HTTP server
    local answer
    exec 9<>/dev/tcp/127.0.0.1/9917 && printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&9 && read -r answer <&9
    exec 9>&-
    [[ $answer = *' 200 '* ]]
}

# ---- its work ----------------------------------------------------------------------------
network() { # PROBE-MS
    jq -n --argjson probe "$1" '{ cniVersion: "1.0.0", name: "rails", type: "railhead", ncclConfig: "off", linkTimeoutSeconds: 120, conflictProbeMs: $probe,
        capabilities: { deviceID: true },
        ipam: { type: "railhead-ipam", subnet: "10.10.0.0/24", rangeStart: "10.10.0.50", rangeEnd: "10.10.0.60" } }' >/etc/cni/net.d/rails.conf
}
attach() { network 0 && pod "$1" && cni add "$1" "$2"; } # POD DEVICE
detach() { cni del "$1" "$2" && ip netns del "$1"; }
plugin() {
    local path name
    for path in /proc/[0-9]*; do
        read -r name <"$path/comm" 2>/dev/null && [ "$name" = railhead ] && { echo "${path#/proc/}"; return; }
    done
    return 1
}
killed_add() { # POD DEVICE: while it waits for whether another one has its address
    network 10000 && pod "$1" || return
    cni add "$1" "$2" >/dev/null 2>&1 &
    local driver=$!
    within 60 ip -n "$1" link show dev net1 && kill -KILL "$(plugin)" || return
    ! wait "$driver"
}
is_on_host() { [ -n "$(ls "/sys/bus/pci/devices/$1/net" 2>/dev/null)" ] && [ ! -s "/run/railhead/locks/$1.lock" ]; }
reconciled() { logged '"msg":"reconciled","what":"attachment"'; }

check 'there are NICs and kubelet' node
check 'dpkg installs the package' package_install
check '... its directories are there' test -d /run/railhead -a -d /run/cdi -a -d /var/lib/railhead
check '... systemd knows the unit' drop_in
check 'without a fabric it is not started' systemctl start "$UNIT"
check '... and has not failed' is_state inactive
network 0
check 'the fabric' fabric '.rails[1].softRoce = true | . + { provision: { vfs: 2, mac: "derived" }, pools: [
    { resource: "railhead.io/rail0", rails: ["rail0"], ncclConfig: "off" }, { resource: "railhead.io/late", rails: ["rail1"], binding: "late" } ],
    health: { intervalSeconds: 1, link: { downAfter: 1, upAfter: 1 } } }'
check 'systemd starts it, and waits until it serves' systemctl start "$UNIT"
[ "$failures" = 0 ] || { systemctl status --no-pager "$UNIT"; tail -n 20 "$LOG"; finish; }
pid=$(property MainPID)
check '... it offers what there is' offers rail0 2
check '... and has made the VFs that were missing' offers late 2
check '... is ready' within 60 get /readyz
check '... shows its metrics' get /metrics
check '... has a filter of system calls and no way to new privileges' grep -qz 'NoNewPrivs:.1.Seccomp:.2' "/proc/$pid/status"
check 'it allocates' allocate rail0 1
vf=${devices[0]}
check '... ADD by the package'\''s plugin' attach a "$vf"
check 'it is restarted under the pod' systemctl restart "$UNIT"
check '... by systemd, as another process' test "$(property MainPID)" != "$pid"
check '... offers them again' offers rail0 2
check '... DEL' detach a "$vf"
check 'an ADD is killed' killed_add b "$vf"
check '... its VF is fetched from the living namespace' within 60 reconciled && check '... and is on the host again' within 180 is_on_host "$vf"
ip netns del b
check 'a PF goes down, its VFs are unhealthy' ip link set pf0 down && check '... seen' unhealthy rail0 2
check '... it comes up' ip link set pf0 up && check '... seen, too' offers rail0 2
check 'a changed fabric' fabric '. + { pools: [ { resource: "railhead.io/rail0", rails: ["rail0"], ncclConfig: "off" } ] }'
check '... is read on reload' systemctl reload "$UNIT"
check '... and is in force' within 60 logged '"msg":"advertised devices changed","resource":"railhead.io/late"'
echo '{' >/etc/railhead/fabric.json
check 'a broken one, too' systemctl reload "$UNIT" && check '... is not taken' within 60 logged 'the last valid configuration stays in use'
check 'it is the same process all the time' test "$(property NRestarts)" = 0
rm -rf "$KUBELET" && mkdir -p "$KUBELET"
check 'a node that joins another cluster: kubelet has a new directory' node
check '... it is served there' offers rail0 2
check 'it is stopped' systemctl stop "$UNIT"
check '... by its own will' test "$(property Result)-$(property ExecMainStatus)" = success-0

# ---- what it may not ---------------------------------------------------------------------------
# The unit with another program, whose own system calls are more than railheadd's.
probe() {
    sed -e 's/^Type=notify/Type=oneshot/' -e "s|^ExecStart=.*|ExecStart=/usr/bin/bash /run/probe|" -e '/^SystemCall\|^Watchdog\|^Restart/d' \
        -e "s|^\[Install\]|StandardOutput=file:$OUT/probed\nStandardError=inherit\n&|" \
        "/usr/lib/systemd/system/$UNIT" >/run/systemd/system/probe.service
    systemctl daemon-reload && systemctl start probe.service
}
mkdir -p /var/lib/kubelet/{pods,pki,plugins_registry}
echo secret | tee /var/lib/kubelet/pki/key >/root/key
cat >/run/probe <<'END'
no() { "${@:2}" >/dev/null 2>&1 && echo "CAN $1" || echo "cannot $1"; }
yes() { "${@:2}" >/run/railhead/said 2>&1 && echo "can $1" || { echo "CANNOT $1: $(cat /run/railhead/said)"; }; }
no 'write its configuration' touch /etc/railhead/x
no 'write programs' touch /usr/bin/x
no 'replace CNI plugins' touch /opt/cni/bin/x
no 'write to other state' touch /var/lib/x
no 'write what is mounted' touch /mnt/job/x
no 'read root'\''s files' cat /root/key
no 'read kubelet'\''s keys' cat /var/lib/kubelet/pki/key
no 'write to pods'\'' volumes' touch /var/lib/kubelet/pods/x
no 'register as another kind of plugin' touch /var/lib/kubelet/plugins_registry/x
no 'make a device' mknod /run/railhead/x c 1 3
no 'read a device' head -c 1 /dev/hwrng
no 'make a program that runs as another' sh -c 'touch /run/railhead/s && chmod u+s /run/railhead/s'
no 'load a module' sh -c 'modprobe macvlan && test -d /sys/module/macvlan'
no 'have a user namespace' unshare -U true
no 'have a process namespace' unshare -p -f true
no 'set the clock' sh -c 'date -s 2020-01-01; [ "$(date +%Y)" = 2020 ]'
no 'set the host'\''s name' hostname x
no 'read the kernel'\''s log' dmesg
no 'become another user' busybox setuidgid nobody true
for directory in /run/railhead /run/cdi /run/k8s.cni.cncf.io /var/lib/cni /var/lib/kubelet /var/lib/railhead; do
    yes "write to $directory" touch "$directory/probe"
    rm -f "$directory/probe"
done
yes 'have a network namespace' unshare -n true
yes 'see another sysfs' unshare -n -m mount -t sysfs sysfs /sys
yes 'make VFs' sh -c 'cat /sys/class/net/pf0/device/sriov_numvfs >/tmp/n && test -w /sys/class/net/pf0/device/sriov_numvfs'
echo end
END

check 'another program in its place' probe
cat "$OUT/probed"
check '... came to its end' grep -qx end "$OUT/probed"
deny '... could do nothing that it should not, and all that it should' grep -E '^CAN' "$OUT/probed"

check 'the package is removed' dpkg --force-depends,bad-path -r railhead
check '... and systemd does not have it any more' sh -c "! systemctl cat $UNIT | grep ExecStart=/usr"
finish
