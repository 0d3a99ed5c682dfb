// Every record that Railhead keeps or sends, with the properties of tests/support/record_test.h.
#include "cni/fabric/node_index.h"
#include "cni/state/allocation.h"
#include "cni/state/attach_log.h"
#include "cni/state/bind_protocol.h"
#include "cni/state/conflict_log.h"
#include "cni/state/displaced_names.h"
#include "cni/state/journal_shape.h"
#include "cni/state/tenants.h"
#include "deviceplugin/services/fabric_follow/follower.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/node_index/index_store.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/tools/fabric_suggest/observe.h"
#include "tests/support/record_test.h"

namespace railhead::testing {
namespace {

using Records =
    ::testing::Types<AllocationRecord, AttachTiming, BindRequest, JournalEntry, OwnNames, ConflictRecord,
                     NodeIndex, Tenant, AttachedDevice, BindAnswer, node_index::IndexRecord,
                     fabric_follow::FollowState, fabric_suggest::NodeObservation, health::DeviceHealth,
                     health::Drains, health::HealthState, lldp::LldpReport, reachability::ReachabilityReport>;
INSTANTIATE_TYPED_TEST_SUITE_P(Of, RecordTest, Records);

}  // namespace
}  // namespace railhead::testing
