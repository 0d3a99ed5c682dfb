#!/usr/bin/python3 -B
"""That medians are medians, series survive their file, contenders' costs are summed, and budgets are judged."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / 'bench'))

from budgets import FAILED, MET, MISSED, verdicts  # noqa: E402
from report import rtnl_table, show, tables  # noqa: E402
from series import Failed, Part, Record, Series  # noqa: E402

CHANGE = 'a change of a link'
BESIDE = ('nothing', 'a process that computes', 'a process that lists links', 'scrapes')

# Figures with which every budget is met, exactly on its limit where it may be.
GOOD = [
    *[line for group in ('stand-ins', 'vf', 'vf-rxe')
      for line in ((group, 'bare kernel', 'ADD', 100), (group, 'railhead-ipam', 'ADD', 10), (group, 'railhead', 'ADD', 160))],
    ('vf', 'host-device chain', 'ADD', 480),
    *[line for group in ('rails', 'rails-rxe') for line in ((group, 'two ip -batch', 'ADD', 600), (group, 'railhead', 'ADD', 750))],
    ('rails-rxe', '- nccl', 'ADD', 3.9), ('guest-startup', '/bin/true', 'start-up', 1.32), ('nccl', 'railhead', 'ADD', 1.9),
    ('rails', 'host-device chain', 'ADD', 3000), ('journal', '1 entry', 'ADD', 100), ('journal', '1000 entries', 'ADD', 110),
    ('startup', '/bin/true', 'start-up', 0.5),
    *[line for who in ('railhead', 'railhead-ipam') for line in (('startup', who, 'start-up', 0.75), ('startup', who, 'size', 2.9))],
    ('daemon', 'railheadd', 'resident', 19),
    ('node', 'bare reading', 'discovery', 20), ('node', 'railheadd', 'discovery', 59.9),
    ('node', 'one durable write', 'Allocate 1', 500), ('node', 'railheadd, on disk', 'Allocate 1', 500),
    ('node', 'railheadd', 'Allocate 1', 99.9), ('node', 'railheadd', 'prefer 8', 999), ('node', 'railheadd', 'resident', 19.9),
    ('node', 'railheadd, late binding', 'resident', 19.9), ('node', 'railheadd', 'idle CPU', 0.09),
    ('node', 'railheadd', 'change to new list', 999), ('node', 'railctl', 'doctor', 199),
    ('node', 'railctl', 'doctor --list: start and end', 5), ('node', 'bare reading', 'doctor', 20),
    ('node', 'railheadd', '/metrics/nics, CPU', 49.9),
    *[(group, who, CHANGE, us) for group in ('rtnl', 'guest-rtnl') for who, us in zip(BESIDE, (10, 10, 20, 20))],
    ('ipam', 'railhead-ipam', 'ADD, empty pool', 10), ('ipam', 'host-local', 'ADD, empty pool', 10),
    ('ipam', 'railhead-ipam', 'ADD, 900 taken', 10), ('ipam', 'host-local', 'ADD, 900 taken', 50),
    ('ipam', 'railhead-ipam', 'ADD, eight rails', 14.9), ('ipam', 'railhead-ipam', '32 at once, ADDs', 150),
    ('ipam', 'host-local', '32 at once, ADDs', 100), ('ipam', 'railhead-ipam', 'ADD, 32 at once', 10),
    ('ipam', 'railhead-ipam', '1,000 pods x 8 rails', 1), ('ipam', 'the disk alone', '1,000 pods x 8 rails', 1)]

# One figure moved, and how many budgets hang on it.
MISSES = [
    ('stand-ins', 'railhead', 'ADD', 160.1, 1), ('vf-rxe', 'railhead', 'ADD', 160.1, 1), ('vf', 'railhead', 'ADD', 160.1, 2),
    ('vf', 'host-device chain', 'ADD', 479.9, 1), ('rails', 'railhead', 'ADD', 750.1, 2), ('rails', 'two ip -batch', 'ADD', 599.9, 1),
    ('rails', 'host-device chain', 'ADD', 2999.9, 1), ('rails-rxe', 'railhead', 'ADD', 750.1, 1),
    ('journal', '1000 entries', 'ADD', 110.1, 1), ('startup', 'railhead', 'start-up', 0.81, 1),
    ('startup', 'railhead-ipam', 'size', 3, 1), ('daemon', 'railheadd', 'resident', 20, 1), ('nccl', 'railhead', 'ADD', 2, 1),
    ('rails-rxe', '- nccl', 'ADD', 4, 1),  # twice as slow a machine
    ('node', 'railheadd', 'discovery', 60.2, 1), ('node', 'railheadd', 'Allocate 1', 100, 1),
    ('node', 'railheadd', 'prefer 8', 1000, 1), ('node', 'railheadd', 'resident', 20, 1),
    ('node', 'railheadd, late binding', 'resident', 20, 1), ('node', 'railheadd', 'idle CPU', 0.1, 1),
    ('node', 'railheadd', 'change to new list', 1000, 1), ('node', 'railheadd', '/metrics/nics, CPU', 50, 1),
    ('node', 'railctl', 'doctor', 200, 1), ('ipam', 'railhead-ipam', 'ADD, empty pool', 10.1, 1),
    ('ipam', 'railhead-ipam', 'ADD, 900 taken', 10.1, 1), ('ipam', 'railhead-ipam', 'ADD, eight rails', 15, 1),
    ('ipam', 'railhead-ipam', '32 at once, ADDs', 149, 1), ('ipam', 'railhead-ipam', '1,000 pods x 8 rails', 1.1, 1)]


def good(but: tuple = ()) -> Record:
    """`but`: group, who and what of a series that is left out."""
    record = Record()
    for group, who, what, value in GOOD:
        if (group, who, what) != but:
            record.add(group, who, what, 'ms', value)
    return record


def count(record: Record, outcome: str, **parts: bool) -> int:
    return sum(verdict.outcome == outcome for verdict in verdicts(record, **parts))


class RecordTest(unittest.TestCase):
    def test_median(self) -> None:
        self.assertEqual(Series('', '', '', '', [5, 1, 9]).median(), 5)
        self.assertEqual(Series('', '', '', '', [4, 1, 9, 2]).median(), 3)

    def test_percentile_is_the_nearest_rank(self) -> None:
        series = Series('', '', '', '', list(range(100, 0, -1)))
        self.assertEqual([series.percentile(share) for share in (0.99, 1, 0)], [99, 100, 1])
        self.assertEqual(Series('', '', '', '', [7]).percentile(0.99), 7)

    def test_parts_are_summed_and_kept(self) -> None:
        record = Record()
        record.add_parts('vf', 'chain', 'ADD', [Part('one', 2, 1), Part('two', 3, 1)])
        self.assertEqual({(one.who, one.what): one.values for one in record.of('vf')},
                         {('chain', 'ADD'): [5], ('chain', 'ADD CPU'): [2], ('- one', 'ADD'): [2], ('- two', 'ADD'): [3]})

    def test_survives_its_file_in_parts(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = folder + '/lines'
            for values in ((1.25,), (2.5, 3)):
                part = Record()
                part.add('vf', 'railhead', 'ADD', 'ms', *values)
                part.append_to(path)
            read = Record()
            read.read(path)
            self.assertEqual(read.find('vf', 'railhead', 'ADD'), Series('vf', 'railhead', 'ADD', 'ms', [1.25, 2.5, 3]))
            self.assertIsNone(read.find('vf', 'railhead', 'DEL'))
            with self.assertRaisesRegex(Failed, 'there is no'):
                read.read(path + '-not')
            for wrong in ('{"group":"vf"}', 'no JSON', '{"group":"a","who":"b","what":"c","unit":"d","values":["x"]}', '3'):
                pathlib.Path(path).write_text(wrong)
                with self.assertRaisesRegex(Failed, 'line 1'):
                    read.read(path)


class VerdictTest(unittest.TestCase):
    def test_all_met_on_the_limit(self) -> None:
        judged = verdicts(good())
        self.assertEqual([one for one in judged if one.outcome != MET], [])
        self.assertEqual(len(judged), 32)

    def test_each_budget_can_be_missed(self) -> None:
        for group, who, what, value, budgets in MISSES:
            with self.subTest(group=group, who=who, what=what):
                record = good((group, who, what))
                record.add(group, who, what, 'ms', value)
                self.assertEqual(count(record, MISSED), budgets)

    def test_each_figure_is_needed(self) -> None:
        for group, who, what, _ in GOOD:
            with self.subTest(group=group, who=who, what=what):
                self.assertGreaterEqual(count(good((group, who, what)), FAILED), 1)

    def test_the_slowest_hundredth_is_judged(self) -> None:
        """One of a hundred values may be slow, two not."""
        cases = [('node', 'railheadd', 'Allocate 1', 40, 5000), ('ipam', 'railhead-ipam', 'ADD, 32 at once', 10, 100),
                 ('rtnl', 'scrapes', CHANGE, 5, 500), ('guest-rtnl', 'scrapes', CHANGE, 5, 500)]
        for group, who, what, usual, slow in cases:
            with self.subTest(group=group):
                record = good()
                record.add(group, who, what, '', *[usual] * 98, slow)
                self.assertEqual(count(record, MISSED), 0)
                record.add(group, who, what, '', slow)
                self.assertEqual(count(record, MISSED), 1)

    def test_a_change_of_a_link_is_judged_by_who_is_as_slow(self) -> None:
        for group, base in (('rtnl', BESIDE[1]), ('guest-rtnl', BESIDE[2])):
            record = good()
            record.add(group, 'scrapes', CHANGE, 'us', *[500] * 5)
            self.assertEqual(count(record, MISSED), 1, group)
            record.add(group, base, CHANGE, 'us', *[500] * 5)
            self.assertEqual(count(record, MISSED), 0, group)

    def test_a_node_with_fewer_devices_says_so(self) -> None:
        for devices, says_so in ((1024, False), (32, True)):
            record = good()
            record.add('node', 'railheadd', 'devices', 'VFs', devices)
            self.assertEqual('with no more than 32 VFs' in show(verdicts(record)), says_so)

    def test_a_slow_machine_gets_more_for_startup(self) -> None:
        for value, missed in ((1.9, 0), (1.95, 1)):
            record = Record()
            for group, who, what, good_value in GOOD:
                slow = {'/bin/true': 1.32, 'railhead-ipam': 1.32, 'railhead': value}.get(who)
                record.add(group, who, what, 'ms', slow if (group, what) == ('startup', 'start-up') else good_value)
            self.assertEqual(count(record, MISSED), missed, value)

    def test_a_part_that_was_left_out_is_not_judged(self) -> None:
        record = Record()
        for group, who, what, value in GOOD:
            if group in ('stand-ins', 'startup', 'nccl', 'daemon'):
                record.add(group, who, what, 'ms', value)
        others = {'guest': False, 'node': False, 'ipam': False}
        self.assertEqual(count(record, FAILED, **others), 0)
        for part in others:
            self.assertGreater(count(record, FAILED, **others | {part: True}), 0, part)
        self.assertIn('FAILED', show(verdicts(record)))


class TableTest(unittest.TestCase):
    def test_every_group_has_a_table(self) -> None:
        text = tables(good())
        for title in ('Start-up on this machine', 'Stand-ins (veth)', 'The NCCL configuration', '16 VFs: 19.00 MB', 'railheadd on a made-up node',
                      'one durable write', 'IPAM plugins alone', 'VFs with VLAN in the guest', 'Eight VFs of a pod',
                      'by the length of the journal', 'beside /metrics/nics on the made-up node', 'nics in the guest (emulated)'):
            self.assertIn(title, text)
        self.assertEqual(tables(Record()), '')

    def test_changes_of_a_link(self) -> None:
        record = good()
        record.add('rtnl', 'one question', 'asking for a PF and its VFs', 'us', 65.4)
        table = rtnl_table(record, 'rtnl', 'Title')
        for part in ('Title (n = 1)', '2.00x', '65.4'):
            self.assertIn(part, table)


unittest.main()
