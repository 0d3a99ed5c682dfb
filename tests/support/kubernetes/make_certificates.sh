#!/bin/bash
# make_certificates.sh DIR - what TLS tests need, as PEM in DIR: an authority (ca), a server's certificate for
# localhost, 127.0.0.1, ::1 and 10.77.0.1 (server), a client's (admin); another authority (other-ca).
set -euo pipefail
cd "$1"
authority() { # NAME
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1-key.pem" -out "$1.pem" \
        -subj "/CN=$1" -days 2 -addext keyUsage=critical,keyCertSign 2>/dev/null
}
signed() { # NAME AUTHORITY SUBJECT ALTERNATIVE_NAMES
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1-key.pem" -out "$1.csr" -subj "$3" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2-key.pem" -set_serial "$RANDOM$RANDOM" -days 2 -out "$1.pem" \
        -extfile <(echo "subjectAltName=$4"; echo "extendedKeyUsage=serverAuth,clientAuth") 2>/dev/null
}
authority ca
authority other-ca
signed server ca /CN=server DNS:localhost,IP:127.0.0.1,IP:::1,IP:10.77.0.1
signed admin ca /O=system:masters/CN=admin DNS:client.test
