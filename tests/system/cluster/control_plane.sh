# shellcheck shell=bash disable=SC2154 # sourced by run.sh, whose variables it uses
# control_plane.sh - certificates, etcd, kube-apiserver, kube-controller-manager and kube-scheduler in the present
# network namespace, and kubectl for them, for run.sh.
#
#   control_plane_start   sets KUBECONFIG; node0.kubeconfig, node1.kubeconfig and node.admin.kubeconfig in $work are for the nodes
# The nodes are 10.96.0.15 and 10.96.0.16; for them 10.96.0.1, which is the service "kubernetes" as well, is this machine's loopback (nat.sh).
# So a program without kube-proxy, like railheadd here, reaches the service all the same.
kubectl() { "$BIN/kubectl" "$@"; }

# certificate NAME SUBJECT [NAMES]: signed by ca.
certificate() {
    openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" &&
        openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out "$1.crt" \
            -extfile <(printf '%s\n' "${3:+subjectAltName=$3}" 'extendedKeyUsage=serverAuth,clientAuth')
}
certificates() {
    cd "$work/pki" || return
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=ca &&
        openssl genrsa -out accounts.key 2048 && openssl rsa -in accounts.key -pubout -out accounts.pub &&
        certificate apiserver /CN=kube-apiserver IP:127.0.0.1,IP:10.96.0.1,DNS:kubernetes.default.svc &&
        certificate admin /O=system:masters/CN=admin &&
        certificate controllers /CN=system:kube-controller-manager &&
        certificate scheduler /CN=system:kube-scheduler &&
        certificate node0 /O=system:nodes/CN=system:node:node0 IP:10.96.0.15,DNS:node0 &&
        certificate node1 /O=system:nodes/CN=system:node:node1 IP:10.96.0.16,DNS:node1
}
# kubeconfig WHOSE SERVER
kubeconfig() {
    jq -n --arg server "https://$2" --arg ca "$(base64 -w0 "$work/pki/ca.crt")" --arg crt "$(base64 -w0 "$work/pki/$1.crt")" \
        --arg key "$(base64 -w0 "$work/pki/$1.key")" '{ apiVersion: "v1", kind: "Config", "current-context": "here",
        clusters: [ { name: "here", cluster: { server: $server, "certificate-authority-data": $ca } } ],
        users: [ { name: "here", user: { "client-certificate-data": $crt, "client-key-data": $key } } ],
        contexts: [ { name: "here", context: { cluster: "here", user: "here" } } ] }'
}
serves() { kubectl get --raw /readyz; }

control_plane_start() {
    local pki=$work/pki address
    (certificates) || return
    kubeconfig admin 127.0.0.1:443 >"$work/admin.kubeconfig"
    kubeconfig admin 10.96.0.1:443 >"$work/node.admin.kubeconfig"
    kubeconfig node0 10.96.0.1:443 >"$work/node0.kubeconfig"
    kubeconfig node1 10.96.0.1:443 >"$work/node1.kubeconfig"
    kubeconfig controllers 127.0.0.1:443 >"$work/controllers.kubeconfig"
    kubeconfig scheduler 127.0.0.1:443 >"$work/scheduler.kubeconfig"
    export KUBECONFIG=$work/admin.kubeconfig
    # The API server reaches kubelet through QEMU's port; as from 127.0.0.1, since the guest cannot be called by its own address.
    ip link set lo up || return
    for address in 10.96.0.15 10.96.0.16; do
        ip address add $address/32 dev lo && ip route replace local $address dev lo table local src 127.0.0.1 || return
    done
    "$(PATH=$BIN:$PATH command -v etcd)" --data-dir "$work/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
        --listen-peer-urls http://127.0.0.1:2380 >"$LOGS/etcd.log" 2>&1 &
    "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --secure-port=443 --bind-address=127.0.0.1 --advertise-address=10.96.0.15 \
        --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
        --service-account-key-file="$pki/accounts.pub" --service-account-signing-key-file="$pki/accounts.key" \
        --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.96.0.0/24 \
        --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --kubelet-preferred-address-types=InternalIP \
        --kubelet-client-certificate="$pki/admin.crt" --kubelet-client-key="$pki/admin.key" >"$LOGS/apiserver.log" 2>&1 &
    within 120 serves || return
    "$BIN/kube-controller-manager" --kubeconfig="$work/controllers.kubeconfig" --service-account-private-key-file="$pki/accounts.key" \
        --root-ca-file="$pki/ca.crt" --use-service-account-credentials --leader-elect=false --bind-address=127.0.0.1 >"$LOGS/controllers.log" 2>&1 &
    "$BIN/kube-scheduler" --kubeconfig="$work/scheduler.kubeconfig" --leader-elect=false --bind-address=127.0.0.1 >"$LOGS/scheduler.log" 2>&1 &
}
