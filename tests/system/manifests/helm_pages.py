"""What pages, comments and NOTES.txt say of the chart, held against what it makes."""
import json
import pathlib
import re
import subprocess

import yaml

from helm_compare import REPO, Problem, fabric_and_daemonset
from references import Rendering
from strict_yaml import LOADER, load

MANIFESTS = REPO / 'manifests/README.md'
RUNTIMES = REPO / 'docs/reference/kubernetes.md'
QUICK_START = REPO / 'docs/start/quick-start.md'


def of_notes(chart):
    """The next command of each installation."""
    wanted = [
        (['multus'], {}, 'railhead', ['kubectl label node NODE railhead.io/nics=true', 'kubectl -n railhead rollout status daemonset railheadd',
                                      'networks: roce }', 'railhead.io/roce: 1', 'namespace: default', 'A changed fabric restarts no pod']),
        (['multus', 'multus-per-rail'], {}, 'railhead', ['networks: roce-rail0 }', 'railhead.io/rail0: 1']),
        (['multus', 'chained'], {}, 'railhead', ['No networks were made']),
        (['multus'], {'removalCheck': {'enabled': False}}, 'railhead', ['helm uninstall does not check']),
        (['multus'], {'networks': [{'namespace': 'team-a'}]}, 'gpu-net', ['kubectl label namespace gpu-net', 'namespace: team-a']),
    ]
    for examples, values, namespace, words in wanted:
        said = chart.notes(examples, values, namespace)
        yield from (f'NOTES.txt with {examples} does not say "{word}"' for word in words if word not in said)
        if pod := re.search(r"<<'EOF'\n(.*?)\n +EOF", said, re.S):
            pod = load(re.sub(r'^    ', '', pod[1], flags=re.M))
            yield from (f'NOTES.txt with {examples}: {problem}' for problem in Rendering(chart.objects(examples, values), '').of_pods(pod))


def of_quick_start(chart):
    """The cluster part of the quick start: its files exist, and what it installs has the objects, label and resource that it names."""
    text = QUICK_START.read_text(encoding='utf-8')
    commands = '\n'.join(re.findall(r'^```sh\n(.*?)^```$', text, re.M | re.S)).splitlines()
    files = sorted(set(re.findall(r'(?<![\w/])(?:manifests|tests)/[\w./-]+', '\n'.join(commands))))
    yield from (f'quick-start.md: there is no {name}' for name in files if not (REPO / name).exists())
    example = re.search(r'cp manifests/helm/railhead/examples/([\w-]+)\.yaml values\.yaml', text)
    install = next((line.split() for line in commands if line.startswith('helm install ')), [])
    if not example or '--set' not in install or '-n' not in install:
        yield 'quick-start.md: no example is copied to values.yaml, or helm install has no -n or --set'
        return
    key, value = install[install.index('--set') + 1].split('=')
    for part in reversed(key.split('.')):
        value = {part: value}
    try:
        documents = chart.objects([example[1]], value)
    except Problem as problem:
        yield from (f'quick-start.md: helm install: {line}' for line in str(problem).splitlines())
        return
    daemonset = fabric_and_daemonset(documents)[1]
    namespace, selector = install[install.index('-n') + 1], daemonset['spec']['template']['spec']['nodeSelector']
    labels = ' '.join(f'{label}={to}' for label, to in selector.items())
    for command in (rf'kubectl label nodes -l \S+ {labels}', f'kubectl -n {namespace} rollout status daemonset {daemonset["metadata"]["name"]}'):
        if not any(re.fullmatch(command, line) for line in commands):
            yield f'quick-start.md: the command is missing: {command}'
    for name in files:
        if name.startswith('manifests/examples/') and (REPO / name).is_file():
            pods = load((REPO / name).read_text(encoding='utf-8'))
            yield from (f'quick-start.md: {name}: {problem}' for problem in Rendering(documents, '').of_pods(pods))


def of_upgrades():
    """Without the values of the installation `helm upgrade` goes back to the chart's own, and the images lose their registry."""
    for page in [MANIFESTS, *sorted((REPO / 'docs').rglob('*.md'))]:
        text = page.read_text(encoding='utf-8').replace('\\\n', ' ')
        for command in re.findall(r'^ *(helm upgrade .*)', text, re.M):
            yield from (f'{page.relative_to(REPO)}: {command}: without {word}' for word in ('--set image.registry=', '-f values.yaml', '-n ')
                        if word not in command)
    if 'helm upgrade' not in QUICK_START.read_text(encoding='utf-8'):
        yield 'quick-start.md: no helm upgrade brings the suggested fabric'


def of_pasted(chart):
    """The command of values.yaml that makes values of a fabric.json."""
    text = (chart.directory / 'values.yaml').read_text(encoding='utf-8')
    command = re.search(r"`(\(printf .*>fabric\.yaml)`", text)
    fabric = REPO / 'manifests/overlays/multus/fabric.json'
    if not command:
        yield 'values.yaml: no command makes fabric.yaml'
        return
    folder = pathlib.Path(chart.work)
    (folder / 'fabric.json').write_bytes(fabric.read_bytes())
    subprocess.run(['sh', '-c', command[1]], cwd=folder, check=True)
    config, _ = fabric_and_daemonset(load(chart.run('-namespace', 'railhead', chart.directory, folder / 'fabric.yaml')))
    if json.loads(config['data']['fabric.json']) != json.loads(fabric.read_text(encoding='utf-8')):
        yield f'values.yaml: {command[1]} gives another fabric'


def of_pairs(chart, railctl):
    """The first words of each example say what goes before it; all of these give a fabric that railctl takes."""
    texts = {path.stem: path.read_text(encoding='utf-8') for path in sorted((chart.directory / 'examples').glob('*.yaml'))}
    before = {name: (re.match(r'# With (another one|[\w-]+\.yaml) before it', text) or [None, ''])[1] for name, text in texts.items()}
    whole = [name for name, word in before.items() if not word]
    for name in whole:
        if 'rails' not in (yaml.load(texts[name], LOADER).get('fabric') or {}):
            yield f'examples/{name}.yaml: does not say what goes before it'
    for name, word in before.items():
        for pair in [[one, name] for one in whole] if word == 'another one' else [[word.removesuffix('.yaml'), name]] if word else [[name]]:
            fabric = pathlib.Path(chart.work) / 'fabric.json'
            try:
                fabric.write_text(fabric_and_daemonset(chart.objects(pair, {}))[0]['data']['fabric.json'], encoding='utf-8')
            except Problem as problem:
                yield f'examples {" ".join(pair)}: {problem}'
                continue
            done = subprocess.run([railctl, 'config', 'check', fabric], capture_output=True, text=True, check=False)
            if done.returncode:
                yield f'examples {" ".join(pair)}: {done.stdout}{done.stderr}'
    # The table of manifests/README.md names the same files.
    for cell in re.findall(r'^\|[^|]*\| (`[\w-]+\.yaml`[^|]*) \| [^|]* \|$', MANIFESTS.read_text(encoding='utf-8'), re.M):
        names = re.findall(r'`([\w-]+\.yaml)`', cell)
        said = names[0] if len(names) == 2 else '' if cell.endswith('alone') or names == ['multus.yaml'] else 'another one'
        if said != before.get(names[-1].removesuffix('.yaml')):
            yield f'README.md: {cell}: the comment of {names[-1]} says otherwise'


def of_runtimes(chart, text=None):
    """The page's table of directories, which names the upstream sources, and what the chart makes of each runtime."""
    text = text or RUNTIMES.read_text(encoding='utf-8')
    rows = re.findall(r'^\| ((?:`\w+`,? )+)\| `(/\S+)` \| `(/\S+)` \| `(/\S+)` \|$', text, re.M)
    listed = {name: paths for names, *paths in rows for name in re.findall(r'\w+', names)}
    known = json.loads((chart.directory / 'values.schema.json').read_text(encoding='utf-8'))['properties']['runtime']['enum']
    if sorted(listed) != sorted(known):
        yield f'{RUNTIMES.name}: lists the directories of {sorted(listed)}; the chart knows {sorted(known)}'
    for name, (cni_bin, kubelet_root, cdi) in listed.items():
        daemon = next(d for d in chart.objects(['multus'], {'runtime': name}) if d['kind'] == 'DaemonSet')
        volumes = {one['name']: one['hostPath']['path'] for one in daemon['spec']['template']['spec']['volumes'] if 'hostPath' in one}
        for volume, path in (('cni-bin', cni_bin), ('pods', f'{kubelet_root}/pods'), ('cdi', cdi)):
            if volumes[volume] != path:
                yield f'{RUNTIMES.name}: {name}: {path}, and the chart has {volumes[volume]}'


def problems(chart, railctl):
    yield from of_notes(chart)
    yield from of_quick_start(chart)
    yield from of_upgrades()
    yield from of_pasted(chart)
    yield from of_pairs(chart, railctl)
    yield from of_runtimes(chart)
    if len([*of_runtimes(chart, RUNTIMES.read_text(encoding='utf-8').replace('k3s/data/cni', 'k3s/data/bin'))]) != 1:
        yield 'a wrong directory of k3s in the table of runtimes is not found'
