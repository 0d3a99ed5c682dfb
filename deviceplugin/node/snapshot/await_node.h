// AwaitNode: waits until the node has been read for the first time. false: the worker's stop came before.
// Threads: the worker's.
#pragma once

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/worker.h"

namespace railhead {

// Subscribes the worker to `node`.
inline bool AwaitNode(Worker& worker, const Published<NodeSnapshot>& node) {
  node.Subscribe(worker);
  while (!worker.StopRequested() && node.Get()->inventory == nullptr)
    worker.Wait(Worker::Clock::time_point::max());
  return !worker.StopRequested();
}

}  // namespace railhead
