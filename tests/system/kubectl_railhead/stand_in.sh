#!/bin/sh
# stand_in.sh - plays kubectl for the nodes that $PLAYED/pods names. kubectl_railhead.sh has it in PATH as `kubectl`.
#
# $PLAYED has these files.
#   nodes          names of nodes that have the label
#   pods           lines as manifests/kubectl-railhead asks for them; the pod of NODE is railheadd-NODE
#   slow           names of nodes that never answer
#   unreachable    error text: no request is answered
#   forbidden      error text: nothing is executed in a pod
#   answers/       NODE.COMMAND or COMMAND: what railctl prints there; without a file the real railctl runs
#   statuses/      the exit status of the same name; without a file 0
#   wait_for       a number: each exec waits until so many run, or all nodes were asked
#   pod            a pod as `why` asks for it, requests and allocatable: lines of pods and nodes; event: why it is Pending
#   root           RAILHEAD_ROOT of the real railctl, $RAILCTL
# It writes `calls` (command lines), `running/` (an exec each), `began` (a line each), `counts` (how many ran
# at one time) and `sleepers` (process ids of slow nodes).
set -u
echo "$*" >>"$PLAYED/calls"
while :; do
    case $1 in
        --context | --kubeconfig) shift 2 ;;
        *) break ;;
    esac
done
fail() { echo "$*" >&2; exit 1; }
[ ! -f "$PLAYED/unreachable" ] || fail "$(cat "$PLAYED/unreachable")"

token="eyJhbGciOiJSUzI1NiJ9.$PLANTED.c2lnbmF0dXJl"
played_yaml() {
    cat <<END
items:
- metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"env": [{"name": "PASSWORD", "value": "$PLANTED"}]}
    name: railheadd
  spec:
    containers:
    - name: railheadd
      env:
      - name: MIRROR_PASSWORD
        value: $PLANTED
      - name: HARMLESS
        value: shown
END
}
played_log() {
    cat <<END
railheadd began
Authorization: Bearer $PLANTED
token is $token
-----BEGIN EC PRIVATE KEY-----
$PLANTED
-----END EC PRIVATE KEY-----
$PROBE_KEY
railheadd is ready
END
}

count() { set -- "$PLAYED/running"/*; if [ -e "$1" ]; then echo $#; else echo 0; fi; }
# Waits until as many run as may run at once. The last ones do not wait: no more will come. Whatever leaves has
# counted before: the first one to leave sees all that the others wait for.
wait_for_others() {
    wanted=$(cat "$PLAYED/wait_for") all=$(wc -l <"$PLAYED/pods") tries=0
    while :; do
        asked=$(wc -l <"$PLAYED/began") now=$(count)
        [ "$now" -lt "$wanted" ] && [ "$asked" -lt "$all" ] || break
        tries=$((tries + 1))
        [ "$tries" -lt 1000 ] || fail "the stand-in waited in vain for $wanted at once"
        sleep 0.02
    done
    echo "$now" >>"$PLAYED/counts"
}

played_railctl() { # NODE WORD...
    node=$1
    shift
    command=$1
    case $command in
        fabric | journal | ipam) command=$1-$2 ;;
        rdma-test) case "$*" in *--listen*) command=rdma-listen ;; esac ;;
    esac
    for name in "$node.$command" "$command"; do
        [ -f "$PLAYED/answers/$name" ] || continue
        cat "$PLAYED/answers/$name"
        [ ! -f "$PLAYED/errors/$name" ] || cat "$PLAYED/errors/$name" >&2
        [ ! -f "$PLAYED/statuses/$name" ] || exit "$(cat "$PLAYED/statuses/$name")"
        exit 0
    done
    RAILHEAD_ROOT=$PLAYED/root exec "$RAILCTL" "$@"
}

verb=$1
shift
case $verb in
    get)
        case "$*" in *secret*) printf '%s\n' "$PLANTED" "$PROBE_KEY" && exit 0 ;; esac
        case "$*" in
            *' pod -n '*)
                [ -f "$PLAYED/pod" ] || fail 'Error from server (NotFound): pods "none" not found'
                cat "$PLAYED/pod"
                ;;
            *' pods -A --field-selector '*) cat "$PLAYED/requests" ;;
            *' nodes -l '*allocatable*) cat "$PLAYED/allocatable" ;;
            *' events '*FailedScheduling*) cat "$PLAYED/event" ;;
            *' pods '*hostIP*) cat "$PLAYED/pods" ;;
            *' nodes -l '*) cat "$PLAYED/nodes" ;;
            nodes*labels*) sed 's/$/\n  labels {"zone":"a"}\n  conditions [{"type":"Ready"}]/' "$PLAYED/nodes" ;;
            *configMap.name*) echo railhead-fabric-abc ;;
            configmap*) cat "$PLAYED/root/etc/railhead/fabric.json" ;;
            events*) printf 'LAST SEEN\tOBJECT\n1m\tpod/railheadd-gpu-01\n1m\tpod/others-1\n' ;;
            *yaml) played_yaml ;;
            *wide) echo 'NAME READY' && cut -d '|' -f 3 "$PLAYED/pods" ;;
            *) fail "the stand-in does not know: get $*" ;;
        esac
        ;;
    version) echo "Client Version: played" ;;
    logs)
        case "$*" in
            *--previous*) fail 'Error from server (BadRequest): previous terminated container "railheadd" not found' ;;
            *) played_log ;;
        esac
        ;;
    exec)
        given=''
        [ "$1" != -i ] || { given=1 && shift; }
        [ "$1" = -n ] && [ "$4" = -c ] && [ "$6" = -- ] && [ "$7" = railctl ] || fail "the stand-in does not know: exec $*"
        node=${3#railheadd-}
        shift 7
        [ ! -f "$PLAYED/forbidden" ] || fail "$(cat "$PLAYED/forbidden")"
        if grep -qx "$node" "$PLAYED/slow"; then
            echo $$ >>"$PLAYED/sleepers"
            exec sleep 600
        fi
        # What comes by standard input goes to the real railctl.
        if [ -n "$given" ]; then
            RAILHEAD_ROOT=$PLAYED/root "$RAILCTL" "$@"
            rc=$?
            [ "$rc" = 0 ] || echo "command terminated with exit code $rc" >&2
            exit "$rc"
        fi
        trap 'rm -f "$PLAYED/running/$node.$$"' EXIT
        : >"$PLAYED/running/$node.$$"
        count >>"$PLAYED/counts"
        echo "$node" >>"$PLAYED/began"
        [ ! -f "$PLAYED/wait_for" ] || wait_for_others
        (played_railctl "$node" "$@")
        rc=$?
        [ "$rc" = 0 ] || echo "command terminated with exit code $rc" >&2
        exit "$rc"
        ;;
    *) fail "the stand-in does not know: $verb $*" ;;
esac
