# What fuzzers call and nothing else, instrumented for their search, compiled once for all of
# them: of a library some of whose files pull in half the project, the files are named here.
railhead_library(fuzz_skel
  SOURCES ${CMAKE_SOURCE_DIR}/netns/json/json_objects.cc ${CMAKE_SOURCE_DIR}/netns/json/json_reader.cc ${CMAKE_SOURCE_DIR}/cni/protocol/request.cc
          ${CMAKE_SOURCE_DIR}/cni/protocol/cni_result.cc ${CMAKE_SOURCE_DIR}/cni/protocol/cni_error.cc ${CMAKE_SOURCE_DIR}/cni/protocol/pod_args.cc
  DEPS railhead_base nlohmann_json::nlohmann_json)
railhead_library(fuzz_state
  SOURCES ${CMAKE_SOURCE_DIR}/cni/state/bind_protocol.cc ${CMAKE_SOURCE_DIR}/cni/state/checkpoint.cc
          ${CMAKE_SOURCE_DIR}/cni/state/journal_json.cc
          ${CMAKE_SOURCE_DIR}/cni/fabric/addressing_fields.cc ${CMAKE_SOURCE_DIR}/cni/fabric/fabric.cc ${CMAKE_SOURCE_DIR}/cni/fabric/fabric_reader.cc ${CMAKE_SOURCE_DIR}/cni/fabric/handoff_fields.cc
          ${CMAKE_SOURCE_DIR}/cni/fabric/policy.cc ${CMAKE_SOURCE_DIR}/cni/fabric/policy_fields.cc
          ${CMAKE_SOURCE_DIR}/cni/fabric/station_mac.cc
          ${CMAKE_SOURCE_DIR}/cni/fabric/call_permissions.cc
          ${CMAKE_SOURCE_DIR}/cni/attachment/plugin_config.cc ${CMAKE_SOURCE_DIR}/cni/attachment/permissions.cc
  DEPS fuzz_skel railhead_device_fields railhead_sys)
# The plugin as a whole, on the fake kernel: all files but the programs', the tests' and those above.
file(GLOB plugin_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cni/nccl/*.cc ${CMAKE_SOURCE_DIR}/cni/plugin/*.cc
     ${CMAKE_SOURCE_DIR}/cni/state/*.cc ${CMAKE_SOURCE_DIR}/tests/fake/*.cc ${CMAKE_SOURCE_DIR}/tests/sysfs/*.cc)
list(FILTER plugin_files EXCLUDE REGEX "(_test|/main|/config|/permissions|/bind_protocol|/checkpoint|/journal_json)\\.cc$")
railhead_library(fuzz_plugin
  SOURCES ${plugin_files} ${CMAKE_SOURCE_DIR}/cni/protocol/delegate.cc ${CMAKE_SOURCE_DIR}/cni/protocol/plugin.cc
  DEPS fuzz_state railhead_netns)
# Of libraries other than those beside them here, with which they share names.
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/cni/attachment/plugin_config.cc ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/health_json.cc
  ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/rules.cc ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/state_file.cc
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
find_library(LMDB_ARCHIVE liblmdb.a REQUIRED)
railhead_library(fuzz_ipam
  SOURCES ${CMAKE_SOURCE_DIR}/ipam/plugin/ipam_config.cc ${CMAKE_SOURCE_DIR}/ipam/store/events.cc ${CMAKE_SOURCE_DIR}/ipam/plugin/fabric_source.cc
          ${CMAKE_SOURCE_DIR}/ipam/plugin/fields.cc ${CMAKE_SOURCE_DIR}/ipam/store/lmdb.cc ${CMAKE_SOURCE_DIR}/ipam/plugin/peer_fields.cc
          ${CMAKE_SOURCE_DIR}/ipam/store/range.cc ${CMAKE_SOURCE_DIR}/ipam/plugin/range_fields.cc ${CMAKE_SOURCE_DIR}/ipam/store/address_record.cc
          ${CMAKE_SOURCE_DIR}/ipam/plugin/requests.cc ${CMAKE_SOURCE_DIR}/ipam/plugin/resolv_conf.cc
  DEPS fuzz_state ${LMDB_ARCHIVE})
railhead_library(fuzz_store
  SOURCES ${CMAKE_SOURCE_DIR}/ipam/store/alignment.cc ${CMAKE_SOURCE_DIR}/ipam/store/allocate.cc ${CMAKE_SOURCE_DIR}/ipam/store/import_state.cc
          ${CMAKE_SOURCE_DIR}/ipam/store/ledger.cc ${CMAKE_SOURCE_DIR}/ipam/store/node_blocks.cc
          ${CMAKE_SOURCE_DIR}/ipam/store/policy.cc ${CMAKE_SOURCE_DIR}/ipam/store/refusal.cc ${CMAKE_SOURCE_DIR}/ipam/store/store.cc
          ${CMAKE_SOURCE_DIR}/ipam/store/verify.cc
  DEPS fuzz_ipam)
railhead_library(fuzz_pools
  SOURCES ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/sriovdp_to_fabric.cc ${CMAKE_SOURCE_DIR}/netns/sys/user_space.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/node/resources/resource_pool.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/node/resources/selector.cc ${CMAKE_SOURCE_DIR}/deviceplugin/node/resources/sriovdp_config.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/node/resources/sriovdp_selectors.cc
  DEPS fuzz_state)
railhead_library(fuzz_netns
  SOURCES ${CMAKE_SOURCE_DIR}/netns/nl/address_messages.cc ${CMAKE_SOURCE_DIR}/netns/nl/attributes.cc
          ${CMAKE_SOURCE_DIR}/netns/nl/counter_messages.cc
          ${CMAKE_SOURCE_DIR}/netns/nl/dcb_messages.cc ${CMAKE_SOURCE_DIR}/netns/nl/device_attributes.cc
          ${CMAKE_SOURCE_DIR}/netns/nl/device_messages.cc ${CMAKE_SOURCE_DIR}/netns/nl/devlink_messages.cc
          ${CMAKE_SOURCE_DIR}/netns/nl/ethtool_messages.cc
          ${CMAKE_SOURCE_DIR}/netns/nl/uevents.cc
          ${CMAKE_SOURCE_DIR}/netns/nl/link_messages.cc ${CMAKE_SOURCE_DIR}/netns/nl/message.cc
          ${CMAKE_SOURCE_DIR}/netns/nl/neighbour_messages.cc ${CMAKE_SOURCE_DIR}/netns/nl/rdma_messages.cc
          ${CMAKE_SOURCE_DIR}/netns/nl/route_messages.cc ${CMAKE_SOURCE_DIR}/netns/nl/rule_messages.cc
          ${CMAKE_SOURCE_DIR}/netns/nl/socket.cc ${CMAKE_SOURCE_DIR}/netns/nl/vf_messages.cc
          ${CMAKE_SOURCE_DIR}/netns/ns/netns.cc ${CMAKE_SOURCE_DIR}/netns/packet/conflict.cc
          ${CMAKE_SOURCE_DIR}/netns/packet/frames.cc ${CMAKE_SOURCE_DIR}/netns/packet/lldp.cc
          ${CMAKE_SOURCE_DIR}/netns/packet/received.cc
  DEPS railhead_base railhead_device_fields
  PRIVATE_DEPS PkgConfig::LIBNL)

railhead_library(fuzz_daemon
  SOURCES ${CMAKE_SOURCE_DIR}/cni/state/allocation.cc ${CMAKE_SOURCE_DIR}/cni/state/cdi_spec.cc
          ${CMAKE_SOURCE_DIR}/cni/nccl/nccl_files.cc ${CMAKE_SOURCE_DIR}/cni/state/journal.cc
          ${CMAKE_SOURCE_DIR}/cni/state/journal_scan.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/health_json.cc ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/rules.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/state_file.cc ${CMAKE_SOURCE_DIR}/deviceplugin/node/resources/slots.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/services/provision/provision_settings.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/node/topology/accelerators.cc ${CMAKE_SOURCE_DIR}/deviceplugin/node/topology/topology_config.cc
  DEPS fuzz_pools railhead_sys)

railhead_library(fuzz_health
  SOURCES ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/compare.cc ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/judge.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/monitor.cc ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/rate_window.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/recorded_device.cc ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/recording.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/replay.cc ${CMAKE_SOURCE_DIR}/deviceplugin/services/health/rules_json.cc
  DEPS fuzz_daemon)

railhead_library(fuzz_metrics
  SOURCES ${CMAKE_SOURCE_DIR}/deviceplugin/support/metrics/exposition.cc ${CMAKE_SOURCE_DIR}/deviceplugin/support/http/http_message.cc
  DEPS railhead_base)

railhead_library(fuzz_handoff
  SOURCES ${CMAKE_SOURCE_DIR}/tests/handoff/topology_parser.cc ${CMAKE_SOURCE_DIR}/tests/handoff/topology_rules.cc
          ${CMAKE_SOURCE_DIR}/tests/handoff/nccl_model.cc
  DEPS railhead_base)

include(${CMAKE_SOURCE_DIR}/deviceplugin/tls.cmake)
railhead_library(fuzz_rdmatest
  SOURCES ${CMAKE_SOURCE_DIR}/deviceplugin/tools/rdma_test/bytes.cc ${CMAKE_SOURCE_DIR}/deviceplugin/tools/rdma_test/channel.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/tools/rdma_test/wire_protocol.cc ${CMAKE_SOURCE_DIR}/deviceplugin/tools/rdma_test/frame_seal.cc
          ${CMAKE_SOURCE_DIR}/netns/gid/gid_table.cc ${CMAKE_SOURCE_DIR}/deviceplugin/support/keys/shared_keys.cc
  DEPS railhead_base railhead_tls)

# kubelet's messages, for a fuzzer that needs no gRPC.
find_program(PROTOC protoc REQUIRED)
find_library(PROTOBUF_LITE libprotobuf-lite.a REQUIRED)
set(kubelet_proto deviceplugin/services/kubelet/proto/deviceplugin_v1beta1)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/deviceplugin/services/kubelet/proto)
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/${kubelet_proto}.pb.cc ${CMAKE_BINARY_DIR}/${kubelet_proto}.pb.h
  COMMAND ${PROTOC} --proto_path=${CMAKE_SOURCE_DIR} --cpp_out=${CMAKE_BINARY_DIR}
          ${CMAKE_SOURCE_DIR}/${kubelet_proto}.proto
  DEPENDS ${CMAKE_SOURCE_DIR}/${kubelet_proto}.proto VERBATIM)
add_library(fuzz_kubelet_proto STATIC ${CMAKE_BINARY_DIR}/${kubelet_proto}.pb.cc)
target_include_directories(fuzz_kubelet_proto SYSTEM PUBLIC ${CMAKE_BINARY_DIR})
target_compile_options(fuzz_kubelet_proto PRIVATE -w -fsanitize=${RAILHEAD_SANITIZE})
target_link_libraries(fuzz_kubelet_proto PUBLIC ${PROTOBUF_LITE} Threads::Threads)
railhead_library(fuzz_kubelet
  SOURCES ${CMAKE_SOURCE_DIR}/deviceplugin/services/kubelet/handlers.cc ${CMAKE_SOURCE_DIR}/deviceplugin/services/kubelet/cdi_readers.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/services/kubelet/prestart_gate.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/node/resources/allocate.cc ${CMAKE_SOURCE_DIR}/deviceplugin/node/resources/cdi_grant.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/node/resources/device_info.cc ${CMAKE_SOURCE_DIR}/deviceplugin/node/resources/grant.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/node/resources/preferred.cc ${CMAKE_SOURCE_DIR}/deviceplugin/node/inventory/vdpa.cc
  DEPS fuzz_daemon fuzz_kubelet_proto)

railhead_library(fuzz_leaves
  SOURCES ${CMAKE_SOURCE_DIR}/deviceplugin/services/lldp/lldp_report.cc
  DEPS fuzz_skel fuzz_netns)

railhead_library(fuzz_connectivity
  SOURCES ${CMAKE_SOURCE_DIR}/deviceplugin/services/reachability/node_names.cc ${CMAKE_SOURCE_DIR}/deviceplugin/services/reachability/probe_message.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/tools/reach_view/reach_faults.cc ${CMAKE_SOURCE_DIR}/deviceplugin/tools/reach_view/reach_matrix.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/services/reachability/reach_report.cc ${CMAKE_SOURCE_DIR}/deviceplugin/tools/reach_view/reach_stream.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/support/keys/shared_keys.cc
  DEPS fuzz_state fuzz_netns railhead_tls)

railhead_library(fuzz_leasing
  SOURCES ${CMAKE_SOURCE_DIR}/deviceplugin/support/http/base64.cc ${CMAKE_SOURCE_DIR}/deviceplugin/support/http/connection.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/support/kubernetes/kube_config.cc ${CMAKE_SOURCE_DIR}/deviceplugin/services/address_leasing/kube_names.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/support/http/name_lookup.cc ${CMAKE_SOURCE_DIR}/deviceplugin/support/http/tls_context.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/support/kubernetes/yaml_json.cc ${CMAKE_SOURCE_DIR}/ipam/lease/cluster_records.cc
  DEPS fuzz_skel railhead_tls railhead_yaml)

railhead_library(fuzz_migration
  SOURCES ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/addresses.cc ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/chain.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/documents.cc ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/held_addresses.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/migration.cc ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/network.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/policy.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/rails.cc ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/report.cc
          ${CMAKE_SOURCE_DIR}/deviceplugin/tools/migrate/resources.cc
  DEPS fuzz_pools fuzz_store fuzz_leasing)
