#!/usr/bin/python3 -B
"""rollout.py RENDERING - how long a rollout of the rendered DaemonSet takes on 1,250 nodes, in simulated time.

The DaemonSet controller is a model of rollingUpdate() in Kubernetes' pkg/controller/daemon/update.go (1.30), with its
maxSurge, minReadySeconds and at most 250 new pods a pass. A node needs 10 to 90 seconds from a new pod to the end of its
init containers: image, scheduling and kubelet are not ours. Then railheadd is ready at its next readiness probe.
exit status: 0 when a rollout takes less than 30 minutes, a faulty one stops, and no node is ever without a ready pod
"""
import math
import random
import sys

import yaml

NODES = 1250
LIMIT = 30 * 60
BURST = 250
FIRST_START, LAST_START = 10, 90


class Node:
    old_is_there = True
    available_at = None  # of the new pod; infinity: never; None: there is no new pod


class Rollout:
    def __init__(self, surge, min_ready, probe_period, faulty=False):
        self.surge, self.min_ready, self.probe_period, self.faulty = surge, min_ready, probe_period, faulty
        self.nodes = [Node() for _ in range(NODES)]
        self.random = random.Random(1)

    def start(self, node, now):
        ready = self.random.uniform(FIRST_START, LAST_START) + self.random.uniform(0, self.probe_period)
        node.available_at = math.inf if self.faulty else now + ready + self.min_ready

    def run_pass(self, now):
        """What the controller does once: old pods go where the new one is available, new ones come up to the surge."""
        waiting = 0
        for node in self.nodes:
            if node.available_at is None:
                continue
            if node.available_at <= now:
                node.old_is_there = False
            else:
                waiting += 1
        without = [node for node in self.nodes if node.available_at is None]
        for node in without[:min(self.surge - waiting, BURST)]:
            self.start(node, now)

    def is_done(self):
        return not any(node.old_is_there for node in self.nodes)

    def seconds(self, limit):
        """Until each node has the new pod only; None: not within the limit."""
        for now in range(limit):
            self.run_pass(now)
            bare = [node for node in self.nodes if not node.old_is_there and not node.available_at <= now]
            assert not bare, 'a node is without a ready pod'
            if self.is_done():
                return now
        return None


def surge_of(value):
    """As intstr.GetScaledValueFromIntOrPercent() rounds it: up."""
    return math.ceil(NODES * int(value[:-1]) / 100) if isinstance(value, str) else value


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        spec, = (one['spec'] for one in yaml.safe_load_all(file) if one['kind'] == 'DaemonSet')
    # The model keeps each old pod until the new one is available, as the controller does with 0 only.
    assert spec['updateStrategy']['rollingUpdate']['maxUnavailable'] == 0, 'a node may be without a ready pod'
    surge, min_ready = surge_of(spec['updateStrategy']['rollingUpdate']['maxSurge']), spec['minReadySeconds']
    period = spec['template']['spec']['containers'][0]['readinessProbe']['periodSeconds']
    assert Rollout(1, 60, period).seconds(LIMIT) is None, 'one node after the other cannot end that soon'
    faulty = Rollout(surge, min_ready, period, faulty=True)
    assert faulty.seconds(LIMIT) is None and len([node for node in faulty.nodes if node.available_at]) <= surge, \
        'a faulty version goes on'
    seconds = Rollout(surge, min_ready, period).seconds(LIMIT)
    if seconds is None:
        sys.exit(f'rollout.py: {NODES} nodes with maxSurge {surge} and minReadySeconds {min_ready} take more than {LIMIT // 60} minutes')
    print(f'{NODES} nodes, {surge} at once: {seconds // 60} min {seconds % 60} s')


main()
