# shellcheck shell=bash disable=SC2154 # sourced by run-guest.sh, whose variables it uses
# Topology "none": no NIC; the fastest boot.
DEV+=(-smp "$cpus")
