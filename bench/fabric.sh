#!/bin/bash
# fabric.sh NODE EXTRA - prints the fabric.json of the benchmarks: one rail on pf0.
# EXTRA: more fields of the rail, each with a comma at its end.
cat <<END
{ "version": 1,
  "rails": [ { "name": "rail0", "pf": "pf0", $2 "mtu": 1500,
               "subnet": "10.100.0.0/24", "gateway": "10.100.0.254", "routes": ["10.96.0.0/11"], "table": 100,
               "nodeRanges": { "$1": "10.100.0.10-10.100.0.99" } } ],
  "addresses": { "reuseDelaySeconds": 0, "conflictProbeMs": 0 } }
END
