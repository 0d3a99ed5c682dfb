// Translates the plugins of a chain of the SR-IOV suite, one by one, into the configuration of railhead.
//
// A key that railhead has under the same name is kept. A key for something that railhead does by itself is
// dropped. A key that neither railhead nor the plugin before it knows needs a decision. The rules for each
// key follow sriov-cni, rdma-cni, and containernetworking's tuning, sbr and host-device. Threads: pure
// functions.
#pragma once

#include "deviceplugin/tools/migrate/document_section.h"
#include "deviceplugin/tools/migrate/network.h"

namespace railhead::migrate {

// The first plugin of the chain, sriov or host-device, without its ipam and the keys of the network.
void TranslateMainPlugin(const DocumentSection& plugin, Network* network);
// The plugins behind it. A plugin that railhead cannot replace stays in the chain.
void TranslateChained(const DocumentSection& plugin, Network* network);

}  // namespace railhead::migrate
