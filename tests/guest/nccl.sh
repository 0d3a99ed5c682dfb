# shellcheck shell=bash disable=SC2154,SC2034 # what lib.sh sets it reads, and the other way round
# nccl.sh - NCCL's part, for scripts in a guest that have sourced lib.sh: what it reads in nccl.conf, what it
# makes of that and of the kernel's GID tables, and a connection made by it. Written after NCCL's
# documentation, with nothing of Railhead's.
#
# A pod is a network namespace with the name of its container; "host" is none.

inside() { if [ "$1" = host ]; then "${@:2}"; else ip netns exec "$@"; fi; } # POD COMMAND...

# nccl_value POD VARIABLE: its value in the pod's nccl.conf, without the "=" of an exact list.
nccl_value() {
    local line
    while IFS= read -r line; do
        [ "${line%%=*}" = "$2" ] || continue
        line=${line#*=} && echo "${line#=}" && return
    done <"/run/railhead/nccl/$1/nccl.conf"
    return 1
}

# hex_of ADDRESS: its GID, in 32 digits.
hex_of() {
    local head tail=() part
    if [[ $1 != *:* ]]; then
        IFS=. read -ra head <<<"$1"
        printf '00000000000000000000ffff%02x%02x%02x%02x\n' "${head[@]}"
        return
    fi
    IFS=: read -ra head <<<"${1%%::*}"
    [[ $1 != *::* ]] || IFS=: read -ra tail <<<"${1##*::}"
    while [ $((${#head[@]} + ${#tail[@]})) -lt 8 ]; do head+=(0); done
    for part in "${head[@]}" "${tail[@]}"; do printf '%04x' "$((16#$part))"; done
    echo
}

# gids POD HCA: its table, a line "INDEX GID NETDEV TYPE" for each entry in use.
gids() {
    # shellcheck disable=SC2016 # expanded in the namespace
    inside "$1" bash -c '
        cd "/sys/class/infiniband/$1/ports/1" || exit
        for i in {0..15}; do
            read -r gid <gids/$i && [ -n "${gid//[0:]/}" ] && read -r netdev <gid_attrs/ndevs/$i &&
                read -r type <gid_attrs/types/$i && echo "$i ${gid//:/} $netdev $type"
        done 2>/dev/null
        true' _ "$2"
}

# hca_on POD INTERFACE: of those that nccl.conf names.
hca_on() {
    local hcas
    IFS=, read -ra hcas <<<"$(nccl_value "$1" NCCL_IB_HCA)"
    # shellcheck disable=SC2016 # expanded in the namespace
    inside "$1" bash -c '
        for hca in "${@:2}"; do
            read -r parent <"/sys/class/infiniband/$hca/parent" && [ "$parent" = "$1" ] && echo "$hca" && exit
        done
        exit 1' _ "$2" "${hcas[@]}"
}

# in_range GID ADDRESS/LENGTH: of the same family.
in_range() {
    local range length=${2#*/} digits rest
    range=$(hex_of "${2%/*}")
    [[ $2 == *:* ]] || length=$((length + 96))
    digits=$((length / 4)) rest=$((length % 4))
    [ "${1:0:digits}" = "${range:0:digits}" ] || return
    [ "$rest" = 0 ] || [ $((16#${1:digits:1} >> (4 - rest))) = $((16#${range:digits:1} >> (4 - rest))) ]
}

# nccl_index POD HCA: NCCL_IB_GID_INDEX; where that is -1, the first RoCE v2 GID of NCCL_IB_ADDR_FAMILY
# in NCCL_IB_ADDR_RANGE.
nccl_index() {
    local index family range gid type
    index=$(nccl_value "$1" NCCL_IB_GID_INDEX) || return
    [ "$index" = -1 ] || { echo "$index"; return; }
    family=$(nccl_value "$1" NCCL_IB_ADDR_FAMILY) && range=$(nccl_value "$1" NCCL_IB_ADDR_RANGE) &&
        [ "$(nccl_value "$1" NCCL_IB_ROCE_VERSION_NUM)" = 2 ] || return
    while read -r index gid _ type; do
        case $family:$gid in
            AF_INET:00000000000000000000ffff*) ;;
            AF_INET:* | AF_INET6:00000000000000000000ffff* | AF_INET6:fe80*) continue ;;
        esac
        if [ "$type" = 'RoCE v2' ] && in_range "$gid" "$range"; then echo "$index" && return; fi
    done < <(gids "$1" "$2")
    return 1
}

# moves FROM NIC TO INTERFACE: RDMA writes from one pod to the other by what their files say. They meet by the
# interface of NCCL_SOCKET_IFNAME, as ranks do. NIC: the interface in FROM; of the host, which has no file,
# "HCA INDEX". rate: what the client has measured, in MB/s. Other tries, for on a busy machine the emulated
# NICs lose more than soft RoCE bears; what is wrong is wrong three times.
rate=0
# said_by POD...: what the two ends and their soft RoCE have said of a failure.
said_by() {
    local pod
    for pod in "$@"; do inside "$pod" rdma statistic | tr '\n' ' '; done
    grep -Ehv '^ |^-|^$' /tmp/server.log /tmp/client.log
}
moves() { moves_once "$@" || moves_once "$@" || moves_once "$@"; }
moves_once() {
    local server client meet status=1
    server=$(hca_on "$3" "$4") && server="$server $(nccl_index "$3" "$server")" || return
    client=$2
    if [ "$1" != host ]; then client=$(hca_on "$1" "$2") && client="$client $(nccl_index "$1" "$client")" || return; fi
    meet=$(ip -4 -n "$3" -j address show dev "$(nccl_value "$3" NCCL_SOCKET_IFNAME)" | jq -r '.[0].addr_info[0].local')
    : >/tmp/client.log
    # Not by a function: its process would be a shell's, whose end is not the server's.
    ip netns exec "$3" timeout 120 ib_write_bw "${gentle[@]}" -d "${server% *}" -x "${server#* }" >/tmp/server.log 2>&1 &
    server=$!
    if within 60 listens "$3" 18515; then
        inside "$1" timeout 120 ib_write_bw "${gentle[@]}" -d "${client% *}" -x "${client#* }" "$meet" >/tmp/client.log 2>&1
        status=$?
    fi
    [ "$status" = 0 ] || kill "$server" 2>/dev/null
    if ! wait "$server" || [ "$status" != 0 ]; then said_by "$1" "$3"; return 1; fi
    read -r _ _ _ rate _ < <(grep -A1 '#bytes' /tmp/client.log | tail -n 1)
}
