#!/usr/bin/env python3
"""The verdicts of `./run bench comm`, from rows written by hand, and its command line."""

import argparse
import os
import re
import sys
import tempfile
import unittest
import xml.dom.minidom

import comm
import peers
import plot
import table


def row(peer, config, us, collective="all_reduce", size=4096, variant="", placement="near", ranks=2,
        clean=9):
    return {"peer": peer, "config": config, "variant": variant, "collective": collective,
            "type": "f32", "ranks": ranks, "bytes": size, "placement": placement, "us": us,
            "us_min": us, "us_p25": us, "us_p75": us, "samples": 9, "clean": clean, "right": True}


class Points(unittest.TestCase):
    def test_median_over_rounds_and_best_variant_of_the_limit(self):
        rows = [row("penstock", "pool", us) for us in (3.0, 1.0, 2.0)]
        rows += [row("limit", "shared", us, variant="staged") for us in (1.0, 9.0, 9.0)]
        rows += [row("limit", "shared", us, variant="direct") for us in (4.0, 1.5, 1.6)]
        points = table.points_of(rows)
        self.assertEqual(len(points), 1)
        self.assertEqual(points[0].columns, {"penstock/pool": 2.0, "limit/shared": 1.6})
        self.assertEqual(points[0].variant, "direct")
        self.assertAlmostEqual(points[0].vs_limit("penstock/pool"), 1.25)

    def test_placements_and_ranks_are_kept_apart(self):
        rows = [row("penstock", "pool", 1.0), row("penstock", "pool", 4.0, placement="far"),
                row("penstock", "pool", 8.0, ranks=4)]
        self.assertEqual(sorted(p.columns["penstock/pool"] for p in table.points_of(rows)),
                         [1.0, 4.0, 8.0])

    def test_best_peer_is_the_fastest_of_the_others(self):
        rows = [row("penstock", "pool", 2.0), row("limit", "shared", 0.5),
                row("openmpi", "cma", 5.0), row("mpich", "cma", 3.0)]
        point = table.points_of(rows)[0]
        self.assertEqual(point.best_peer(), ("mpich/cma", 3.0))
        self.assertAlmostEqual(point.vs_peer("penstock/pool"), 1.5)
        self.assertIsNone(table.points_of([row("penstock", "pool", 2.0)])[0].best_peer())


class Verdicts(unittest.TestCase):
    def short(self, config, ours, peer, limit):
        rows = [row("penstock", config, ours), row("openmpi", "cma", peer)]
        if limit:
            rows.append(row("limit", "shared", limit))
        return table.falls_short(table.points_of(rows)[0], f"penstock/{config}")

    def test_pool_needs_half_again_or_the_limit(self):
        self.assertIsNone(self.short("pool", 10, 15, 1))       # 1.5 of the peer
        self.assertIsNone(self.short("pool", 10, 10, 7.8))     # 1.28 times the limit
        self.assertIsNotNone(self.short("pool", 10, 14, 7.6))  # 1.4 of it, 1.32 times the limit
        self.assertIsNotNone(self.short("pool", 10, 14, None))

    def test_pool_is_nowhere_below_the_floor_even_at_the_limit(self):
        self.assertIn("below 0.9", self.short("pool", 10, 8.9, 10))

    def test_private_has_a_floor(self):
        self.assertIsNone(self.short("private", 10, 7.6, 1))
        self.assertIn("below 0.75", self.short("private", 10, 7.4, 1))

    def test_summary_has_mean_worst_and_the_short_ones(self):
        rows = []
        for size, ours in ((8, 1.0), (64, 4.0)):
            rows += [row("penstock", "private", ours, size=size),
                     row("openmpi", "cma", 2.0, size=size)]
        entry, = table.summarise(table.points_of(rows))
        self.assertAlmostEqual(entry["vs_peer"], 1.0)  # of 2 and 0.5
        self.assertFalse(entry["mean_reached"])
        self.assertEqual(entry["worst"], {"point": "all_reduce f32 64 B", "vs_peer": 0.5,
                                          "peer": "openmpi/cma"})
        self.assertEqual([short["point"] for short in entry["short"]], ["all_reduce f32 64 B"])

    def test_markdown_shows_all_of_it(self):
        rows = [row("penstock", "pool", 10.0), row("openmpi", "cma", 12.0),
                row("limit", "shared", 5.0, variant="lines")]
        points = table.points_of(rows)
        about = {"machine": comm.machine(), "realtime": False, "failures": [],
                 "not_measured": [["gloo/tcp", "it was not built"]]}
        text = table.markdown(points, table.summarise(points), [], about)
        self.assertIn("| 4 KiB | 10.0 | 12.0 openmpi/cma | 5.00 lines | 1.20x ! | 2.00 |", text)
        self.assertIn("not measured: gloo/tcp: it was not built", text)
        self.assertEqual(len({line.count("|") for line in text.split("\n") if "4 KiB |" in line}), 1)


class Plots(unittest.TestCase):
    def test_a_plot_is_svg_with_a_line_for_each_series(self):
        rows = []
        for size in (8, 512, 1 << 20):
            rows += [row("penstock", "pool", size / 64, size=size),
                     row("openmpi", "cma", size / 32, size=size)]
        with tempfile.TemporaryDirectory() as folder:
            paths = plot.write_plots(table.points_of(rows), folder)
            self.assertEqual([os.path.basename(p) for p in paths], ["all_reduce-f32-2-near.svg"])
            document = xml.dom.minidom.parse(paths[0])
        lines = document.getElementsByTagName("polyline")
        self.assertEqual(len(lines), 2)
        for line in lines:
            xs, ys = zip(*(map(float, pair.split(","))
                           for pair in line.getAttribute("points").split()))
            self.assertEqual(len(xs), 3)
            self.assertEqual(list(xs), sorted(xs))                # larger to the right
            self.assertEqual(list(ys), sorted(ys, reverse=True))  # slower further up


class CommandLine(unittest.TestCase):
    def parse(self, *arguments):
        return comm.parse_options(list(arguments), "/nowhere")

    def test_sizes(self):
        self.assertEqual(self.parse("--sizes", "8,4K,16M").sizes, [8, 4096, 16 << 20])
        self.assertEqual(self.parse().sizes[-1], 16 << 20)
        for text in ("", "x", "-1", "4KB"):
            with self.assertRaises(argparse.ArgumentTypeError):
                comm.parse_size(text)

    def test_what_is_not_there_is_named(self):
        options = self.parse("--buffers", "pool", "--coherence", "hardware")
        chosen, missed = peers.choose(options)
        self.assertEqual([peer.name for peer in chosen], ["penstock/pool"])
        self.assertEqual({name.split("/")[0] for name, _ in missed},
                         {"openmpi", "mpich", "gloo", "limit"})
        for _, why in missed:
            self.assertIn("not built", why)

    def test_peers_are_chosen_by_expression(self):
        _, missed = peers.choose(self.parse("--peers", "mpich/c"))
        self.assertEqual([name for name, _ in missed], ["mpich/cma", "limit/shared"])
        with self.assertRaises(argparse.ArgumentTypeError):
            comm.parse_regex("(")

    def test_coherence_and_buffers_make_the_columns(self):
        def names(*arguments):
            return [peer.config for peer in peers.penstock_peers(self.parse(*arguments))]
        self.assertEqual(names(), ["pool", "private", "pool-software"])
        self.assertEqual(names("--coherence", "software"), ["pool-software"])
        self.assertEqual(names("--coherence", "software", "--buffers", "private"),
                         ["private-software"])
        self.assertEqual(names("--quick", "--coherence", "hardware"), ["pool", "private"])

    def test_what_would_take_long_is_left_out_of_a_quick_run(self):
        many = len(os.sched_getaffinity(0)) + 1
        mpich, openmpi = peers.Peer("mpich", "cma"), peers.Peer("openmpi", "cma")
        self.assertIsNone(peers.skipped(mpich, many, self.parse()))
        self.assertIn("spins", peers.skipped(mpich, many, self.parse("--quick")))
        self.assertIsNone(peers.skipped(mpich, 1, self.parse("--quick")))
        self.assertIsNone(peers.skipped(openmpi, many, self.parse("--quick")))

    def test_rounds_end_in_time_and_slow_peers_run_once(self):
        class FakeRunner:
            def __init__(self):
                self.ran = []

            def run(self, peer, ranks):
                self.ran.append((peer.name, ranks))
                clock[0] += 50 if peer.library == "slow" else 1
                return [{"right": True}]

        clock = [0.0]
        real, comm.time.monotonic = comm.time.monotonic, lambda: clock[0]
        self.addCleanup(setattr, comm.time, "monotonic", real)
        real_say, comm.say = comm.say, lambda text: None
        self.addCleanup(setattr, comm, "say", real_say)
        both = [peers.Peer("fast", "a"), peers.Peer("slow", "b")]
        runner = FakeRunner()
        rows = comm.run_rounds(self.parse("--ranks", "2"), runner, both, [])
        self.assertEqual(runner.ran, [("fast/a", 2), ("slow/b", 2), ("fast/a", 2), ("fast/a", 2)])
        self.assertEqual([row["round"] for row in rows], [1, 1, 2, 3])
        runner = FakeRunner()  # 51 s a round at first, and a minute allowed
        comm.run_rounds(self.parse("--ranks", "2", "--minutes", "1"), runner, both, [])
        self.assertEqual(len(runner.ran), 2)

    def test_a_program_that_takes_too_long_is_stopped_and_its_rows_count(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "penstock")
            with open(program, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\nfor last; do :; done\n"  # --out FILE stands last
                           "echo '{\"right\": true}' > \"$last\"\nsleep 60 & wait\n")
            os.chmod(program, 0o700)
            options = self.parse("--programs", folder)
            options.program_seconds = 1
            with peers.Runner(options, lambda text: None) as runner:
                rows = runner.run(peers.Peer("penstock", "pool"), 2)
                self.assertEqual(rows, [{"right": True}])
                self.assertEqual(runner.stopped, [["penstock/pool, 2 ranks", "the rest, after 1 s"]])
                self.assertEqual(runner.failures, [])
                self.assertTrue(os.path.isdir(runner.folder))
            self.assertFalse(os.path.exists(runner.folder))

    def test_the_control_file_holds_a_control_page(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "problem.h"), encoding="utf-8") as file:
            ranks = int(re.search(r"kMaxRanks = (\d+)", file.read())[1])
        self.assertGreaterEqual(peers.CONTROL_BYTES, (ranks + 3) * 64 + ranks * 64)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
