#!/bin/bash
# fabric.sh NODE EXTRA - prints the fabric.json of these tests: two rails.
# EXTRA: more fields of both rails, each with a comma at its end.
rail() { # NUMBER EXTRA NODE
    cat <<END
    { "name": "rail$1", "pf": "pf$1", $2 "mtu": 1500,
      "subnet": "10.10$1.0.0/24", "gateway": "10.10$1.0.254", "routes": ["10.96.0.0/11"], "table": 10$1,
      "nodeRanges": { "$3": "10.10$1.0.10-10.10$1.0.99" } }
END
}
cat <<END
{ "version": 1,
  "rails": [
$(rail 0 "$2" "$1"),
$(rail 1 "$2" "$1") ],
  "policy": { "networks": [ { "allow": ["*"], "devices": "any" } ] },
  "addresses": { "reuseDelaySeconds": 0 } }
END
