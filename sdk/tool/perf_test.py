#!/usr/bin/env python3
"""penstock perf, by itself and under other launchers.

usage: perf_test.py --tool FILE [unittest arguments]
"""

import glob
import json
import os
import subprocess
import time

from tool_case import CLEAN, TOOL, ToolTest, main, tool, wait_until


class Perf(ToolTest):
    COLLECTIVES = ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all",
                   "gather", "scatter", "send_recv", "barrier"]

    def perf(self, ranks, *arguments, devices=1, status=0, **environment):
        out, _ = tool("run", "-n", str(ranks), "--devices", str(devices), "--pool-size", "32M", "--",
                      "penstock", "perf", *arguments, "--json", status=status, **environment)
        return json.loads(out)

    def check(self, ranks, collective, *arguments, devices=1, **environment):
        report = self.perf(ranks, collective, "-w", "1", "-n", "2", *arguments, devices=devices,
                           **environment)
        self.assertEqual(report["ranks"], ranks)
        self.assertEqual(report["devices"], devices)
        self.assertTrue(report["results"])
        for row in report["results"]:
            self.assertGreater(row["out_of_place"]["time_us"], 0)
        if collective != "barrier":
            self.assertEqual(report["wrong"], 0, report)
        return report

    def test_all_collectives(self):
        for ranks in (1, 2, 3, 4, 5):
            for collective in self.COLLECTIVES:
                if ranks == 1 and collective == "send_recv":
                    continue
                with self.subTest(ranks=ranks, collective=collective):
                    self.check(ranks, collective, "-b", "0", "-e", "200K", "-f", "27", "-r",
                               str(ranks - 1), devices=1 + ranks % 3)

    def test_all_types_and_operations(self):
        report = self.check(3, "all_reduce", "-b", "1999", "-e", "1999", "-d", "all", "-o", "all")
        self.assertEqual(len({(row["type"], row["redop"]) for row in report["results"]}), 72)
        self.check(2, "reduce_scatter", "-b", "3001", "-e", "3001", "-d", "all", "-o", "all")

    def test_several_passes_and_modes(self):
        for options in ([], ["--blocking"], ["--fresh"]):
            self.check(3, "all_reduce", "-b", "300K", "-e", "300K", "-d", "bf16", *options, devices=3,
                       PENSTOCK_BLOCK_BYTES="16K")
        self.check(2, "all_gather", "-b", "1M", "-e", "1M", devices=2, PENSTOCK_COHERENCE="software",
                   PENSTOCK_ENGINE="scalar")

    def test_sizes_and_speeds(self):
        report = self.check(4, "reduce_scatter", "-b", "100", "-e", "1000", "-i", "300", "-d", "f32")
        self.assertEqual([row["size"] for row in report["results"]], [96, 400, 688, 992])
        self.assertEqual([row["count"] for row in report["results"]], [6, 25, 43, 62])
        row = report["results"][1]["out_of_place"]
        self.assertAlmostEqual(row["algbw"], 400 / row["time_us"] / 1000, delta=row["algbw"] * 1e-3)
        self.assertAlmostEqual(row["busbw"], row["algbw"] * 3 / 4, delta=row["algbw"] * 1e-9)
        self.assertTrue(all(row["root"] == -1 for row in report["results"]))

    def test_pool_bytes_of_broadcast(self):
        # The root writes the payload once, and each of the others reads it once.
        row = self.check(4, "broadcast", "-b", "64K", "-e", "64K", "-r", "2")["results"][0]
        self.assertEqual((row["pool_written"], row["pool_read"]), (65536, 3 * 65536))
        self.assertEqual(row["root"], 2)

    def test_alone_and_file(self):
        path = self.path("out.json")
        out, _ = tool("perf", "all_reduce", "-b", "4", "-e", "1K", "-J", path)
        self.assertIn("# Out of bounds values : 0 OK", out)
        self.assertIn("# Avg bus bandwidth", out)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["results"]), 9)
        out, _ = tool("perf", "all_reduce", "-b", "4", "-e", "4", "-c", "0")
        self.assertIn("N/A", out)
        self.assertIn("not checked", out)

    def test_under_other_launchers(self):
        """Ranks that only share a job's name find each other, and leave nothing behind."""
        job = f"tool-test-{os.getpid()}"
        pattern = f"/dev/shm/penstock-{os.getuid()}-*{job}*"
        for attempt in range(2):
            started = []
            for rank in range(3):
                environment = {"RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank),
                               "LOCAL_WORLD_SIZE": "3", "TORCHELASTIC_RUN_ID": job,
                               "PENSTOCK_POOL_BYTES": "8M", "MASTER_PORT": "29500"}
                started.append(subprocess.Popen(
                    [TOOL, "perf", "all_reduce", "-b", "1K", "-e", "4K", "-n", "3"],
                    env={**CLEAN, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    text=True))
                time.sleep(0.2 * attempt)
            results = [process.communicate(timeout=60) for process in started]
            for process, (_, err) in zip(started, results):
                self.assertEqual(process.returncode, 0, err)
            self.assertIn("0 OK", results[0][0])
            self.assertEqual(glob.glob(pattern), [])

    def test_a_crashed_job_of_the_same_name(self):
        job = f"crash-test-{os.getpid()}"
        pattern = f"/dev/shm/penstock-{os.getuid()}-*{job}*"

        def start(rank, *arguments):
            environment = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
                           "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": job,
                           "PENSTOCK_POOL_BYTES": "8M"}
            return subprocess.Popen([TOOL, "perf", "barrier", *arguments], text=True,
                                    env={**CLEAN, **environment}, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE)
        first = [start(rank, "-w", "0", "-n", "100000000") for rank in range(2)]
        wait_until(lambda: glob.glob(pattern), "the pool of the job")
        time.sleep(0.3)
        for process in first:
            process.kill()
            process.communicate()
        # Rank 1 comes first, and must not take the old pool for the new one.
        second = [start(1, "-n", "3")]
        time.sleep(0.3)
        second.insert(0, start(0, "-n", "3"))
        for process in second:
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
        self.assertEqual(glob.glob(pattern), [])

    def test_rank_0_that_never_comes(self):
        _, err = tool("perf", "barrier", status=1, RANK="1", WORLD_SIZE="2", LOCAL_RANK="1",
                      LOCAL_WORLD_SIZE="2", TORCHELASTIC_RUN_ID=f"none-{os.getpid()}",
                      PENSTOCK_TIMEOUT_MS="300")
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn("rank 0 made no pool in time", err)


if __name__ == "__main__":
    main()
