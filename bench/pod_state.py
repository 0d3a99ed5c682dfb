"""Checks whether an ADD really gave the pod what it promises, and a DEL took it away again.

A contender that does less than the others must not win. All of it is outside of the measured time.
"""
import dataclasses
import ipaddress

from runner import Awaited, Runner
from series import Failed

MTU = 1500


@dataclasses.dataclass
class PodLink:
    """A device as the pod is to have it; `address` "": one of the subnet."""
    name: str
    netdev: str  # its name on the host
    subnet: str
    gateway: str
    route: str
    address: str = ''


def _reaches(link: PodLink, address: ipaddress.IPv4Address, state: dict) -> bool:
    """A rule for the address whose table has the route by this device."""
    own = ipaddress.ip_network(address)
    tables = [rule['table'] for rule in state['rules'] if rule['from'] and ipaddress.ip_network(rule['from']) == own]
    wanted = {'to': link.route, 'via': link.gateway, 'link': link.name}
    return any(route['table'] in tables and wanted.items() <= route.items() for route in state['routes'])


def check_attached(runner: Runner, who: str, netns: str, links: list[PodLink]) -> None:
    """With carrier: of the standard plugins none waits for it."""
    runner.wait(netns, [Awaited(link.name) for link in links])
    state = runner.state(netns)
    shown = {one['name']: one for one in state['links']}
    for link in links:
        missing = f'{who}: {link.name} after ADD: '
        mtu, addresses = shown[link.name]['mtu'], shown[link.name]['addresses']
        if len(addresses) != 1:
            raise Failed(f'{missing}not exactly one address: {addresses}')
        own = ipaddress.ip_interface(addresses[0])
        if link.address not in ('', addresses[0]) or own.network != ipaddress.ip_network(link.subnet):
            raise Failed(f'{missing}{own} is not its address')
        if mtu != MTU:
            raise Failed(f'{missing}MTU {mtu}')
        if not _reaches(link, own.ip, state):
            raise Failed(f'{missing}no rule for its address whose table has {link.route}')


def check_detached(runner: Runner, who: str, netns: str, links: list[PodLink]) -> None:
    """The devices are on the host under their own names; of the pod's interfaces and rules nothing is left."""
    state = runner.state(netns)
    in_pod, on_host = ({link['name'] for link in one['links']} for one in (state, runner.state('')))
    for link in links:
        if link.name in in_pod:
            raise Failed(f'{who}: {link.name} is left after DEL')
        if link.netdev not in on_host:
            raise Failed(f'{who}: {link.netdev} is not back on the host after DEL')
    if left := [rule for rule in state['rules'] if rule['from'] or rule['oif']]:
        raise Failed(f'{who}: rules are left after DEL: {left}')
