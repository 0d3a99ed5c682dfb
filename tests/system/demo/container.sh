# shellcheck shell=bash
# container.sh - what a container runtime makes of CDI, in small: for demo scripts in a
# guest. A "container" is a process with the pod's network namespace, a mount namespace
# of its own and what the CDI specs of its devices say: their mounts, and in
# /dev/infiniband their device nodes and no others.
#
# container_start NETNS DEVICE...   DEVICE: as Allocate said, e.g. railhead.io/nic=0000:43:10.0
# container_exec COMMAND...         runs in the container
# container_stop
container_pid=''
container_dir=/run/demo-container

# cdi_edits DEVICE...: the edits of the specs as lines "mount FROM TO OPTIONS" and
# "node PATH HOSTPATH", separated by tabs, without duplicates: the specs of a pod's
# devices name the same file. A device that no spec defines is an error, as in a runtime.
cdi_edits() {
    local specs=(/run/cdi/*.json)
    [ -e "${specs[0]}" ] || { echo "unresolvable CDI devices: $* (no spec in /run/cdi)" >&2; return 1; }
    jq -nr '
        [inputs] as $specs
        | [ $ARGS.positional[] as $name
            | [ $specs[] | .kind as $kind | .containerEdits as $all | .devices[]
                | select("\($kind)=\(.name)" == $name) | $all, .containerEdits | select(. != null) ]
            | if . == [] then error("unresolvable CDI device \($name)") else .[] end
            | (.mounts[]? | ["mount", .hostPath, .containerPath, ((.options // []) | join(","))]),
              (.deviceNodes[]? | ["node", .path, (.hostPath // .path)]) ]
        | unique | .[] | @tsv
    ' --args "$@" < <(cat "${specs[@]}")
}

# bind FROM TO OPTIONS: TO need not exist; the directory it is in is covered by an
# overlay, so that no file is created on the node. container_stop removes that directory
# if it was made for this. /proc/mounts has paths without symbolic links (/var/run).
container_bind() {
    local from=$1 to options=$3 parent=${2%/*} cover
    if [ ! -d "$parent" ]; then
        mkdir -p "$parent" && echo "$parent" >>"$container_dir/made" || return
    fi
    parent=$(realpath "$parent") || return
    to=$parent/${2##*/}
    if [ ! -e "$to" ]; then
        cover=$container_dir/cover${parent//\//-}
        # Once: a second cover would hide what is bound into the first.
        if [ ! -d "$cover" ]; then
            mkdir -p "$cover/up" "$cover/work" &&
                mount -t overlay overlay -o "lowerdir=$parent,upperdir=$cover/up,workdir=$cover/work" "$parent" || return
        fi
        if [ -d "$from" ]; then mkdir -p "$to"; else : >"$to"; fi || return
    fi
    mount --bind "$from" "$to" || return
    case ,$options, in *,ro,*) mount -o remount,bind,ro "$to" ;; esac
}

# container_main EDITS: inside the namespaces; becomes the container's process.
container_main() {
    local kind a b c numbers nodes=()
    while IFS=$'\t' read -r kind a b c; do
        case $kind in
            mount) container_bind "$a" "$b" "$c" || return ;;
            node)
                numbers=$(stat -c '%t %T' "$b") || return
                nodes+=("$a $numbers")
                ;;
        esac
    done <<<"$1"
    mount -t tmpfs -o mode=755 tmpfs /dev/infiniband || return
    for a in "${nodes[@]}"; do
        read -r kind b c <<<"$a"
        mknod -m 666 "$kind" c $((16#$b)) $((16#$c)) || return
    done
    : >"$container_dir/ready"
    exec sleep infinity
}

container_start() {
    local netns=$1 edits
    shift
    edits=$(cdi_edits "$@") || return
    rm -rf "$container_dir"
    mkdir -p "$container_dir" || return
    # shellcheck disable=SC2016 # expanded in the container
    ip netns exec "$netns" bash -c '. "$SRC/tests/support/vm/lib.sh"; . "$SRC/tests/system/demo/container.sh"; container_main "$1"' _ "$edits" &
    container_pid=$!
    within 60 container_is_up && [ -e "$container_dir/ready" ]
}
container_is_up() { [ -e "$container_dir/ready" ] || ! kill -0 "$container_pid" 2>/dev/null; }
container_exec() { nsenter -t "$container_pid" -m -n "$@"; }
container_stop() {
    [ -n "$container_pid" ] || return 0
    kill -KILL "$container_pid" 2>/dev/null
    wait "$container_pid" 2>/dev/null
    container_pid=''
    [ ! -e "$container_dir/made" ] || xargs -r rmdir <"$container_dir/made"
}
