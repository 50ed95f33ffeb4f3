#!/usr/bin/env python3
"""Runs the tool as a person would, and looks at what it prints, its exit status, and /dev/shm.

usage: tool_test.py --tool FILE [unittest arguments: a class name, -v, ...]
"""

import argparse
import glob
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = ""
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}


def tool(*arguments, status=0, timeout=100, **environment):
    """Runs the tool; returns (stdout, stderr). Fails unless it ends with the status."""
    result = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=timeout,
                            env={**CLEAN, **environment}, check=False, stdin=subprocess.DEVNULL)
    if result.returncode != status:
        raise AssertionError(f"{' '.join(arguments)}: exit status {result.returncode}, not {status}"
                             f"\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}")
    return result.stdout, result.stderr


def wait_until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def pools_of(pid):
    return glob.glob(f"/dev/shm/penstock-{os.getuid()}-{pid}-*")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def hung(_signal, _frame):
    raise TimeoutError("the test hangs")


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tool-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # A test that hangs fails by itself, with a traceback, and cleans up.
        signal.signal(signal.SIGALRM, hung)
        signal.alarm(120)
        self.addCleanup(signal.alarm, 0)

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def assert_one_line(self, arguments, *expected, status=2):
        """The tool refuses: one line on stderr, nothing on stdout."""
        out, err = tool(*arguments, status=status)
        self.assertEqual(out, "", arguments)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertRegex(err, r"^penstock: ")
        for text in expected:
            self.assertIn(text, err)


class Usage(ToolTest):
    COMMANDS = ["version", "info", "pool", "pool create", "pool info", "pool check", "pool destroy",
                "pool list", "run", "trace", "trace merge", "perf", "tune", "plan", "replay", "explain",
                "conformance", "vectors"]

    def test_every_help_has_an_example(self):
        for command in self.COMMANDS:
            out, _ = tool(*command.split(), "--help")
            self.assertIn("Example: ", out, command)
            self.assertIn("--help", out, command)

    def test_manual_pages_name_every_option(self):
        man = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "man")
        for command in self.COMMANDS[1:]:
            page = os.path.join(man, f"penstock-{command.split()[0]}.1")
            with open(page, encoding="utf-8") as file:
                text = file.read().replace("\\-", "-")
            for option in set(re.findall(r"--[a-z][a-z_-]+", tool(*command.split(), "--help")[0])):
                if option != "--help":
                    self.assertIn(option, text, page)

    def test_version(self):
        out, _ = tool("version")
        self.assertRegex(out, r"^penstock \d+\.\d+\.\d+\n$")
        self.assertEqual(tool("--version")[0], out)

    def test_bad_usage_is_one_line(self):
        for arguments, text in [
                ([], "subcommand"),
                (["frobnicate"], "there is no subcommand 'frobnicate'"),
                (["pool", "frobnicate"], "there is no subcommand 'frobnicate'"),
                (["plan", "all_reduce", "--frobnicate"], "--frobnicate"),
                (["plan", "all_reduce", "--ranks", "-1"], "'-1' is not a whole number; use 1..64"),
                (["plan", "all_reduce", "--ranks", "0"], "0 is out of range; use 1..64"),
                (["plan", "all_reduce", "--ranks", "65"], "65 is out of range; use 1..64"),
                (["plan", "all_reduce", "--ranks", "99999999999999999999"], "out of range"),
                (["plan", "all_reduce", "--ranks", "3.5"], "'3.5' is not a whole number"),
                (["plan", "all_reduce", "--ranks", ""], "''"),
                (["plan", "all_reduce", "--size", "-5"], "-5"),
                (["plan", "all_reduce", "--size", "1X"], "1X"),
                (["plan", "all_reduce", "--size", "99999999999G"], "99999999999G"),
                (["plan", "all_reduce", "--type", "f99"], "there is no type 'f99'"),
                (["plan", "all_reduce", "--format", "xml"], "text, json or chrome"),
                (["plan", "all_reduce", "--algorithm", "magic"], "magic"),
                (["plan", "frobnicate"], "all_reduce"),
                (["plan", "broadcast", "--ranks", "2", "--root", "2"], "root"),
                (["plan"], "no COLLECTIVE given"),
                (["perf"], "COLLECTIVE is required"),
                (["perf", "frobnicate"], "all_reduce"),
                (["perf", "all_reduce", "-b", "4K", "-e", "1K"], "smaller than -b"),
                (["perf", "all_reduce", "-f", "1"], "'1' is not a number in 1.001"),
                (["perf", "all_reduce", "-f", "nan"], "'nan'"),
                (["perf", "all_reduce", "-n", "-3"], "'-3' is not a whole number"),
                (["perf", "all_reduce", "-d", "f99"], "there is no type 'f99'"),
                (["perf", "all_reduce", "-o", "xor"], "there is no operation 'xor'"),
                (["perf", "broadcast", "-r", "1"], "the ranks are 0..0"),
                (["perf", "send_recv"], "two ranks"),
                (["run", "-n", "4"], "no command given"),
                (["run", "-n", "65", "--", "true"], "65 is out of range"),
                (["run", "-n", "2", "--", "/no/such/program"], "cannot run '/no/such/program'"),
                (["run", "--pool", "/no/such/pool", "--", "true"], "/no/such/pool"),
                (["run", "--pool-size", "1K", "--", "true"], "1K is out of range"),
                (["pool"], "subcommand"),
                (["pool", "create"], "SPEC is required"),
                (["pool", "create", "/no/such/folder/pool"], "/no/such/folder/pool"),
                (["pool", "create", self.path("p"), "--mode", "999"], "'999' is not a mode"),
                (["pool", "create", self.path("p"), "--devices", "17"], "17 is out of range"),
                (["pool", "info", self.path("none")], "none"),
                (["pool", "destroy", self.path("none")], "none"),
                (["replay"], "no trace given"),
                (["replay", "--synthetic", "--policy", "frobnicate"], "best-fit"),
                (["replay", "--synthetic", "--engine", "frobnicate"], "frobnicate"),
                (["replay", "--synthetic", "--inflate", "-1"], "'-1'"),
                (["replay", "--synthetic", "--nodes", "x"], "leave out --nodes"),
                (["explain", "--cluster", self.path("none"), "--all-pending"], "none"),
                (["explain", "--cluster", "x"], "--pod or --all-pending"),
                (["conformance", "--engine", "frobnicate"], "scalar"),
                (["conformance", "--engine", "simd", "--bus", "verilator"], "engine card"),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_one_line(arguments, text)

    def test_wrong_variables_are_named(self):
        out, _ = tool("info", status=1, PENSTOCK_WAIT="maybe", PENSTOCK_TIMEOUT_MS="-1",
                      PENSTOCK_RANK="3", PENSTOCK_SIZE="2", PENSTOCK_ENGINE="frobnicate",
                      PENSTOCK_BLOCK_BYTES="lots", PENSTOCK_COHERENCE="maybe")
        for text in ("PENSTOCK_WAIT=maybe", "PENSTOCK_TIMEOUT_MS=-1", "PENSTOCK_RANK", "frobnicate",
                     "lots", "PENSTOCK_COHERENCE"):
            self.assertRegex(out, rf"wrong: .*{text}")
        for name, value in (("PENSTOCK_WAIT", "maybe"), ("PENSTOCK_TIMEOUT_MS", "0"),
                            ("PENSTOCK_ENGINE", "frobnicate"), ("PENSTOCK_BLOCK_BYTES", "1"),
                            ("PENSTOCK_POOL", "/no/such/pool"), ("PENSTOCK_POOL_BYTES", "3"),
                            ("PENSTOCK_COHERENCE", "maybe"), ("PENSTOCK_RANK", "7")):
            _, err = tool("perf", "barrier", status=2, **{name: value})
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(value, err)


class Info(ToolTest):
    def test_json(self):
        info = json.loads(tool("info", "--json", PENSTOCK_TIMEOUT_MS="1234")[0])
        engines = {engine["name"]: engine for engine in info["engines"]}
        self.assertTrue(engines["scalar"]["available"])
        self.assertEqual(engines["scalar"]["reduce"]["bf16"],
                         ["sum", "prod", "min", "max", "avg", "premul_sum"])
        self.assertIn("REDUCE", engines["scalar"]["operations"])
        variables = {variable["name"]: variable for variable in info["environment"]}
        self.assertEqual(variables["PENSTOCK_TIMEOUT_MS"]["value"], "1234")
        self.assertEqual(variables["PENSTOCK_TIMEOUT_MS"]["origin"], "environment")
        self.assertEqual(variables["PENSTOCK_ENGINE"]["origin"], "default")
        self.assertEqual(info["problems"], [])
        self.assertEqual(info["memory"][0]["path"], "/dev/shm")
        self.assertEqual(info["processor"]["cpus"], len(os.sched_getaffinity(0)))

    def test_text_names_every_variable(self):
        out, _ = tool("info")
        self.assertGreaterEqual(out.count("PENSTOCK_"), 13)
        self.assertIn("scalar", out)


class Pool(ToolTest):
    def test_life(self):
        spec = self.path("pool")
        made = json.loads(tool("pool", "create", spec, "--devices", "2", "--size", "4M",
                               "--mode", "640", "--json")[0])
        self.assertEqual([device["path"] for device in made["devices"]], [spec + ".0", spec + ".1"])
        self.assertEqual(os.path.getsize(spec + ".1"), 4 << 20)
        self.assertEqual(os.stat(spec + ".0").st_mode & 0o777, 0o640)
        self.assertIn("no regions", tool("pool", "info", spec)[0])
        self.assertIn("is sound", tool("pool", "check", spec, "--reclaim")[0])
        self.assert_one_line(["pool", "create", spec, "--devices", "2", "--size", "4M"], spec)
        tool("pool", "destroy", spec)
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_is_no_pool(self):
        noise = random.Random(1).randbytes(4 << 20)
        sound = self.path("sound")
        tool("pool", "create", sound, "--size", "4M")
        with open(sound, "rb") as file:
            image = file.read()
        truncated = self.path("truncated", image[:1 << 20])
        other = self.path("other", image[:8] + struct.pack("<I", 77) + image[12:])
        flipped = self.path("flipped", image[:40] + b"\xff" + image[41:])
        for path, text in ((self.path("noise", noise), "is no pool"),
                           (self.path("empty", b""), "empty"),
                           (self.path("short", b"PENS"), "short"),
                           (truncated, "truncated"), (other, "77"), (flipped, "checksum")):
            for action in ("info", "check"):
                with self.subTest(path=path, action=action):
                    self.assert_one_line(["pool", action, path], text)
            with self.subTest(path=path, action="perf"):
                self.assertIn(text, tool("perf", "barrier", status=2, PENSTOCK_POOL=path)[1])

    def test_findings_give_status_1(self):
        spec = self.path("pool")
        tool("pool", "create", spec, "--size", "4M")
        with open(spec, "r+b") as file:
            file.seek(72)
            table, = struct.unpack("<Q", file.read(8))
            file.seek(table)
            file.write(b"\x55" * 128)
        out, _ = tool("pool", "check", spec, status=1)
        self.assertNotIn("is sound", out)
        self.assertTrue(json.loads(tool("pool", "check", spec, "--json", status=1)[0])["findings"])

    def test_list_and_busy(self):
        run = subprocess.Popen([TOOL, "run", "-n", "1", "--pool-size", "2M", "--", "sleep", "60"],
                               env=CLEAN)
        self.addCleanup(run.wait)
        self.addCleanup(run.terminate)
        wait_until(lambda: pools_of(run.pid), "the pool of the run")
        spec = pools_of(run.pid)[0]

        def listed():
            entries = json.loads(tool("pool", "list", "--json")[0])
            return [entry for entry in entries if entry["spec"] == spec and run.pid in entry["pids"]]
        wait_until(listed, "the pool in the list")
        self.assertEqual(listed()[0]["state"], "temporary, in use")
        self.assertEqual(listed()[0]["bytes"], 2 << 20)
        self.assert_one_line(["pool", "destroy", spec], str(run.pid))
        self.assertTrue(os.path.exists(spec))


class Plan(ToolTest):
    def test_every_algorithm_passes_its_check(self):
        lines = tool("plan", "--list")[0].splitlines()
        self.assertEqual(len({line.split()[0] for line in lines}), 10)
        for line in lines:
            collective, algorithm = line.split()[:2]
            ranks = "2" if collective == "send_recv" else "4"
            group = "2" if algorithm == "two_level" else "0"
            out, _ = tool("plan", collective, "--ranks", ranks, "--devices", "3", "--size", "5001",
                          "--type", "bf16", "--algorithm", algorithm, "--group", group, "--check")
            self.assertIn("the plan is right", out)

    def test_groups_change_the_definition(self):
        out, _ = tool("plan", "reduce", "--ranks", "6", "--group", "3", "--size", "1K", "--check")
        self.assertIn("left fold over 2 groups, in order, of the left folds in rank order inside each "
                      "group of 3 ranks", out)
        self.assertIn("the plan is right", out)
        self.assert_one_line(["plan", "reduce", "--ranks", "6", "--group", "4"], "group is 4",
                             "must divide ranks, 6")
        self.assert_one_line(["plan", "all_reduce", "--group", "2", "--algorithm", "one_shot"],
                             "all_reduce has auto, two_level")

    def test_text(self):
        out, _ = tool("plan", "all_reduce", "--ranks", "2", "--devices", "1", "--size", "64",
                      "--algorithm", "one_shot")
        self.assertIn("left fold", out)
        self.assertNotIn("passes", out.split("\n")[0])
        self.assertIn("rank 1", out)

    def test_json_is_the_plan_of_a_pass(self):
        plan = json.loads(tool("plan", "all_gather", "--ranks", "4", "--devices", "3", "--size",
                               "10M", "--block-bytes", "1M", "--format", "json", "--check")[0])
        self.assertEqual(plan["part_bytes"], (10 << 20) // 4)
        self.assertEqual(plan["pass_part_bytes"], 1 << 20)
        self.assertEqual(plan["passes"], 3)
        self.assertEqual(plan["findings"], [])
        self.assertEqual(len(plan["plan"]["ranks"]), 4)
        self.assertIn("tail", plan)

    def test_chrome_trace(self):
        trace = json.loads(tool("plan", "broadcast", "--ranks", "3", "--format", "chrome")[0])
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        self.assertEqual({event["tid"] for event in events if event.get("ph") == "X"}, {0, 1, 2})


class Run(ToolTest):
    def sh(self, script, *options, ranks=3, status=0, **environment):
        return tool("run", "-n", str(ranks), "--pool-size", "2M", *options, "--", "sh", "-c", script,
                    status=status, **environment)

    def test_pinned_ranks_stay_on_their_cpu(self):
        cpus = sorted(os.sched_getaffinity(0))
        show = "import os; print(sorted(os.sched_getaffinity(0)))"
        for arguments, expected in [
                (["--pin"], {f"[{cpu}]" for cpu in cpus[:2]}),
                (["--pin", "cpus"], {f"[{cpu}]" for cpu in cpus[:2]}),
                (["--bind"], {f"[{cpu}]" for cpu in cpus[:2]}),
                (["--pin", str(cpus[-1])], {f"[{cpus[-1]}]"}),
                ([], {str(cpus)})]:
            out, err = tool("run", "-n", "2", *arguments, "--", sys.executable, "-c", show)
            if "--pin" in arguments and arguments[-1] == "--pin" and len(cpus) > 2:
                continue  # which CPU is a core's first depends on the machine
            self.assertEqual(set(out.split("\n")[:-1]), expected, arguments)
            self.assertEqual(err, "")
        # A pinned rank sees one CPU; with one for every rank it has nobody to yield to.
        wait = "import os; print(os.environ.get('PENSTOCK_WAIT'))"
        for arguments, environment, expected in [
                (["-n", str(len(cpus))], {}, "spin"), (["-n", str(len(cpus) + 1)], {}, "None"),
                (["-n", "1"], {"PENSTOCK_WAIT": "yield"}, "yield")]:
            out, _ = tool("run", *arguments, "--pin", "--", sys.executable, "-c", wait,
                          **environment)
            self.assertEqual(set(out.split()), {expected})
        _, err = tool("run", "-n", "2", "--pin", str(cpus[0]), "--verbose", "--", "true")
        self.assertIn(f"rank 1 on CPU {cpus[0]} (processor", err)
        self.assert_one_line(["run", "--pin", "0-x", "--", "true"], "--pin", "'0-x' is no list")
        self.assert_one_line(["run", "--pin", "1023", "--", "true"], "CPU 1023 is not among those")

    def test_environment(self):
        out, _ = self.sh('echo "$PENSTOCK_RANK/$PENSTOCK_SIZE $PENSTOCK_POOL $PENSTOCK_COMM"')
        lines = sorted(out.splitlines())
        self.assertEqual([line.split()[0] for line in lines], ["0/3", "1/3", "2/3"])
        self.assertEqual(len({line.split()[1] for line in lines}), 1)
        self.assertEqual(len({line.split()[2] for line in lines}), 1)
        self.assertFalse(os.path.exists(lines[0].split()[1]))

    def test_output(self):
        out, err = self.sh('for i in 1 2 3; do echo "a$i"; echo "b$i" >&2; done; printf end',
                           "--tag-output", ranks=2)
        self.assertEqual(sorted(out.splitlines()), sorted(
            f"[{rank}] {text}" for rank in range(2) for text in ("a1", "a2", "a3", "end")))
        self.assertEqual(err.count("[1] b"), 3)
        out, _ = self.sh("printf x", ranks=1)
        self.assertEqual(out, "x")
        long = "y" * 200000
        out, _ = self.sh(f"head -c {len(long)} /dev/zero | tr '\\0' y", ranks=1)
        self.assertEqual(out, long)

    def test_standard_input_goes_to_rank_0(self):
        result = subprocess.run([TOOL, "run", "-n", "2", "--pool-size", "2M", "--", "cat"], env=CLEAN,
                                input="hello\n", capture_output=True, text=True, timeout=60,
                                check=True)
        self.assertEqual(result.stdout, "hello\n")

    def test_a_failing_rank_is_named(self):
        out, err = self.sh('if [ $PENSTOCK_RANK = 1 ]; then exit 7; fi; sleep 60', "--grace", "0",
                           status=7)
        self.assertRegex(err, r"penstock: run: rank 1 \(pid \d+\) exited with status 7")
        self.assertEqual(out, "")
        _, err = self.sh('if [ $PENSTOCK_RANK = 2 ]; then kill -9 $$; fi; sleep 60', "--grace", "0",
                         status=128 + 9)
        self.assertRegex(err, r"rank 2 \(pid \d+\) was killed by signal 9 \(Killed\)")

    def test_a_stopped_rank_is_named(self):
        _, err = self.sh('if [ $PENSTOCK_RANK = 1 ]; then (sleep 0.3; kill -CONT $$) & '
                         'kill -STOP $$; sleep 0.5; fi; exit 0')
        self.assertRegex(err, r"rank 1 \(pid \d+\) was stopped by signal 19 \(Stopped \(signal\)\)")
        self.assertRegex(err, r"rank 1 \(pid \d+\) goes on")

    def test_grace(self):
        out, _ = self.sh('if [ $PENSTOCK_RANK = 1 ]; then exit 3; fi; sleep 0.5; echo done', "--grace",
                         "20", status=3)
        self.assertEqual(out, "done\ndone\n")
        # Who ignores SIGTERM is killed.
        began = time.monotonic()
        self.sh('trap "" TERM; if [ $PENSTOCK_RANK = 1 ]; then exit 3; fi; sleep 60', "--grace", "0",
                status=3)
        self.assertLess(time.monotonic() - began, 30)

    def test_timeout(self):
        _, err = self.sh("sleep 60", "--timeout", "1", status=124)
        self.assertIn("not done after 1 s", err)

    def test_a_named_pool_stays(self):
        spec = self.path("mine")
        tool("pool", "create", spec, "--size", "4M")
        out, _ = self.sh("echo $PENSTOCK_POOL", "--pool", spec, ranks=1)
        self.assertEqual(out, spec + "\n")
        out, _ = self.sh("echo $PENSTOCK_POOL", ranks=1, PENSTOCK_POOL=spec)
        self.assertEqual(out, spec + "\n")
        self.assertTrue(os.path.exists(spec))

    def test_no_room(self):
        _, err = tool("run", "-n", "1", "--pool-size", "1000G", "--", "true", status=2)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("free", err)

    def start_sleepers(self, script="sleep 60"):
        run = subprocess.Popen([TOOL, "run", "-n", "2", "--pool-size", "2M", "--", "sh", "-c",
                                f"echo $$; {script}"], env=CLEAN, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.stdout.close)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        ranks = [int(run.stdout.readline()) for _ in range(2)]
        self.assertEqual(len(pools_of(run.pid)), 1)
        return run, ranks

    def test_interrupt(self):
        for sent in (signal.SIGINT, signal.SIGTERM):
            run, ranks = self.start_sleepers("trap 'echo INT; exit' INT; trap 'echo TERM; exit' TERM; "
                                             "while :; do sleep 0.05; done")
            time.sleep(0.2)  # until the traps are set
            run.send_signal(sent)
            self.assertEqual(run.wait(timeout=30), 128 + sent)
            self.assertEqual(run.stdout.read().split(), [sent.name[3:]] * 2)
            self.assertFalse(any(is_alive(pid) for pid in ranks))
            self.assertEqual(pools_of(run.pid), [])

    def test_second_interrupt_kills(self):
        run, ranks = self.start_sleepers("trap '' INT TERM; while :; do sleep 0.1; done")
        run.send_signal(signal.SIGINT)
        run.stderr.readline()
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=30), 130)
        wait_until(lambda: not any(is_alive(pid) for pid in ranks), "the end of the ranks")

    def test_killed_launcher(self):
        # Also what a rank started goes.
        run, ranks = self.start_sleepers("sleep 60 & echo $!; wait")
        ranks += [int(run.stdout.readline()) for _ in range(2)]
        self.assertTrue(all(is_alive(pid) for pid in ranks))
        run.kill()
        run.wait()
        wait_until(lambda: not any(is_alive(pid) for pid in ranks), "the end of the ranks")
        self.sh("true", ranks=1)
        self.assertEqual(pools_of(run.pid), [])

    def test_a_dead_rank_is_named_by_the_others(self):
        run = subprocess.Popen([TOOL, "run", "-n", "3", "--pool-size", "64M", "--", "penstock", "perf",
                                "barrier", "-n", "1000000000", "-w", "0"], env=CLEAN, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(run.kill)
        line = ""
        while not line.startswith("#   rank  2 pid "):
            line = run.stdout.readline()
            self.assertTrue(line)
        pid = int(line.split()[4])
        os.kill(pid, signal.SIGKILL)
        _, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 128 + 9)
        self.assertIn(f"penstock: run: rank 2 (pid {pid}) was killed by signal 9", err)
        # Both survivors say who is missing, and end by themselves.
        told = [line for line in err.splitlines() if line.startswith("penstock: perf: ")]
        self.assertEqual(len(told), 2, err)
        for line in told:
            self.assertRegex(line, rf"rank 2 \(pid {pid}\)")
        self.assertEqual(pools_of(run.pid), [])


class Trace(ToolTest):
    """run --stats, run --trace and trace merge."""

    def perf(self, *options, ranks=3, **environment):
        return tool("run", "-n", str(ranks), *options, "--", "penstock", "perf", "all_reduce", "-b",
                    "1K", "-e", "64K", "-f", "64", "-n", "10", **environment)

    def slices(self, path):
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        return trace, [event for event in trace["traceEvents"] if event["ph"] == "X"]

    def test_a_timeline_of_all_ranks(self):
        path = self.path("t.json")
        self.perf("--trace", path)
        self.assertEqual(os.listdir(self.folder), ["t.json"])
        trace, slices = self.slices(path)
        self.assertEqual(trace["otherData"]["slices"], len(slices))
        self.assertEqual(trace["otherData"]["dropped"], 0)
        names = {event["args"]["name"].split(" (")[0] for event in trace["traceEvents"]
                 if event["name"] == "process_name"}
        self.assertEqual(names, {"rank 0", "rank 1", "rank 2"})
        self.assertEqual({event["pid"] for event in slices}, {0, 1, 2})
        self.assertLessEqual({"call", "copy", "reduce"}, {event["cat"] for event in slices})
        # All ranks took part in the same span of time.
        spans = [(min(times), max(times)) for times in
                 ([event["ts"] for event in slices if event["pid"] == rank] for rank in range(3))]
        self.assertLess(max(first for first, _ in spans), min(last for _, last in spans))
        # A fold of three ranks lies inside of some call or wait, and says so.
        folds = [event for event in slices if event["cat"] == "reduce"]
        self.assertEqual({event["args"]["sources"] for event in folds}, {3})

    def test_merge(self):
        path = self.path("t.json")
        self.perf(PENSTOCK_TRACE=path)
        self.assertEqual(sorted(os.listdir(self.folder)), ["t.json.0", "t.json.1", "t.json.2"])
        whole = self.path("whole.json")
        out, err = tool("trace", "merge", path, "-o", whole)
        self.assertRegex(out, r"whole.json: \d+ slices of 3 ranks, 0 dropped")
        self.assertEqual(err, "")
        _, slices = self.slices(whole)
        self.assertEqual({event["pid"] for event in slices}, {0, 1, 2})
        # A rank that left none, and one whose part was cut, are named; the rest is there.
        os.remove(path + ".1")
        with open(path + ".2", "r+", encoding="utf-8") as part:
            part.truncate(os.path.getsize(path + ".2") * 2 // 3)
        out, err = tool("trace", "merge", path, "--remove", status=1)
        self.assertIn("rank 1 left no part", err)
        self.assertIn("t.json.2 was cut", err)
        _, slices = self.slices(path)
        self.assertEqual({event["pid"] for event in slices}, {0, 2})
        self.assertEqual(sorted(os.listdir(self.folder)), ["t.json", "whole.json"])

    def test_what_is_no_timeline(self):
        self.assert_one_line(["trace", "merge", self.path("t.json")], "t.json.0", "PENSTOCK_TRACE")
        self.path("t.json.0", '{"a": 1}\n')
        self.assert_one_line(["trace", "merge", self.path("t.json")], "t.json.0",
                             "no part of a timeline")
        # Files of others that only look like parts stay.
        self.path("t.json.2024", "mine")
        self.perf("--trace", self.path("t.json"), ranks=1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["t.json", "t.json.0", "t.json.2024"])

    def test_a_full_buffer_says_what_it_dropped(self):
        path = self.path("t.json")
        _, err = self.perf("--trace", path, ranks=2, PENSTOCK_TRACE_EVENTS="5")
        self.assertRegex(err, r"--trace: \d+ slices were dropped; PENSTOCK_TRACE_EVENTS")
        trace, slices = self.slices(path)
        self.assertEqual(len(slices), 10)
        self.assertGreater(trace["otherData"]["dropped"], 0)

    def test_statistics(self):
        out, _ = self.perf("--stats")
        table = out[out.index("comm '"):].splitlines()
        rows = {line.split()[0]: line.split()[1:] for line in table[1:]}
        # Each rank makes 5 + 10 calls per size, in place and not; two sizes; three ranks.
        self.assertGreaterEqual(int(rows["all_reduce"][0]), 3 * 2 * 2 * 15)
        self.assertEqual(len(rows["all_reduce"]), 10)
        shares = [float(share) for share in rows["all_reduce"][6:]]
        self.assertAlmostEqual(sum(shares), 100, delta=1)
        self.assertEqual({"0", "1", "2"} - set(rows), set())
        self.assertEqual(glob.glob(os.path.join(tempfile.gettempdir(), "penstock-report-*")), [])

    def test_statistics_as_json(self):
        path = self.path("s.json")
        self.perf(ranks=2, PENSTOCK_STATS=path)
        for rank in range(2):
            with open(f"{path}.{rank}", encoding="utf-8") as file:
                report = json.load(file)
            self.assertEqual((report["rank"], report["size"]), (rank, 2))
            numbers = report["reports"][0]["collectives"]["all_reduce"]
            self.assertGreater(numbers["ns"], 0)
            self.assertGreater(numbers["bytes"], numbers["calls"] * 8)


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


class Scheduling(ToolTest):
    NODES = "sn,cpu_milli,memory_mib,gpu,model\na,8000,16384,2,T4\nb,8000,16384,0,\n"
    PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,1000,1024,1,500,\n"

    def test_replay_of_files(self):
        nodes, pods = self.path("nodes.csv", self.NODES), self.path("pods.csv", self.PODS)
        svg, csv = self.path("curve.svg"), self.path("curve.csv")
        out, _ = tool("replay", "--nodes", nodes, "--pods", pods, "--inflate", "1", "--json",
                      "--svg", svg, "--csv", csv)
        result = json.loads(out)
        # Four pods of half a GPU each fill both GPUs.
        self.assertEqual((result["placed"], result["dropped"]), (4, 0))
        self.assertAlmostEqual(result["gpu_alloc_pct"], 100, places=3)
        with open(svg, encoding="utf-8") as file:
            self.assertIn("<svg", file.read())
        with open(csv, encoding="utf-8") as file:
            self.assertTrue(file.readline().startswith("policy,seed,"))

    def test_synthetic_with_several_policies(self):
        arguments = ["replay", "--synthetic", "--synthetic-nodes", "40", "--synthetic-pods", "300",
                     "--policy", "best-fit,random", "--seeds", "2", "--json"]
        results = json.loads(tool(*arguments)[0])["results"]
        self.assertEqual([(r["policy"], r["seed"]) for r in results],
                         [("best-fit", 1), ("best-fit", 2), ("random", 1), ("random", 2)])
        again = json.loads(tool(*arguments, "--engine", "scalar")[0])["results"]
        self.assertEqual([r["gpu_alloc_pct"] for r in results], [r["gpu_alloc_pct"] for r in again])

    def test_replay_beside_published_values(self):
        files = ["--nodes", self.path("nodes.csv", self.NODES),
                 "--pods", self.path("pods.csv", self.PODS), "--inflate", "1", "--seeds", "2"]
        header = "workload,policy,arrived_pct,n_seeds,mean_gpu_alloc_pct,min,max\n"
        # All of the GPUs are allocated.
        near = self.path("near.csv", header + "pods,05-BestFit,100,10,99.7,99.5,99.8\n")
        out, _ = tool("replay", *files, "--published", near)
        self.assertIn("+0.300  within", out)
        out, _ = tool("replay", *files, "--published", near, "--tolerance", "0.1", "--json",
                      status=1)
        self.assertEqual(json.loads(out)["published"][0]["verdict"], "apart")
        self.assert_one_line(["replay", *files, "--published", near, "--workload", "other"],
                             "'other'")

    def test_replay_by_processes(self):
        arguments = ["replay", "--synthetic", "--synthetic-nodes", "40", "--synthetic-pods", "300",
                     "--policy", "fgd", "--json"]
        alone = json.loads(tool(*arguments)[0])
        one = json.loads(tool(*arguments, "--schedulers", "1")[0])["results"][0]
        self.assertEqual((one["placed"], one["dropped"]), (alone["placed"], alone["dropped"]))
        self.assertAlmostEqual(one["gpu_alloc_pct"], alone["gpu_alloc_pct"], places=3)
        three = json.loads(tool(*arguments, "--schedulers", "3")[0])["results"][0]
        self.assertEqual(three["placed"] + three["dropped"], three["arrived"])
        self.assertGreater(three["gpu_alloc_pct"], 80)
        self.assert_one_line([*arguments, "--schedulers", "2", "--csv", "x.csv"], "--csv")

    def test_bad_traces(self):
        pods = self.path("pods.csv", self.PODS)
        nodes = self.path("nodes.csv", self.NODES)
        for name, text, expected in (
                ("column.csv", self.NODES.replace("memory_mib", "memory"), "memory_mib"),
                ("negative.csv", self.NODES.replace("8000", "-8000", 1), "-8000"),
                ("large.csv", self.NODES.replace("8000", "9223372036854775808", 1),
                 "9223372036854775808"),
                ("twice.csv", self.NODES.replace("\nb,", "\na,"), "twice.csv:3"),
                ("empty.csv", "", "empty.csv"),
                ("noise.csv", random.Random(2).randbytes(5000), "noise.csv")):
            with self.subTest(name=name):
                self.assert_one_line(["replay", "--nodes", self.path(name, text), "--pods", pods],
                                     expected)
        for name, text, expected in (
                ("p1.csv", self.PODS.replace("1000", "-1", 1), "-1"),
                ("p2.csv", self.PODS.replace("num_gpu", "gpus"), "num_gpu"),
                ("p3.csv", self.PODS.replace("500", "99999999999999999999"), "p3.csv:2")):
            with self.subTest(name=name):
                self.assert_one_line(["replay", "--nodes", nodes, "--pods", self.path(name, text)],
                                     expected)
        self.assert_one_line(["replay", "--nodes", nodes, "--pods", pods, "--svg", "/no/such/x.svg"],
                             "/no/such/x.svg")

    VECTORS = {
        "plugin": "TaintToleration",
        "cases": [
            {"id": "one", "feature": "score", "pod": {},
             "nodes": [{"name": "a", "taints": [{"key": "k", "effect": "PreferNoSchedule"}]},
                       {"name": "b"}],
             "expect": {"scores": [0, 100]}},
            {"id": "two", "feature": "filter", "config": {
                "gate": "TaintTolerationComparisonOperators"},
             "pod": {"tolerations": [{"key": "k", "operator": "Lt", "value": "7"}]},
             "nodes": [{"name": "a", "taints": [
                 {"key": "k", "value": "6", "effect": "NoSchedule"}]}],
             "expect": {"filter": ["Success"]}},
        ]}

    def test_vectors(self):
        right = self.path("right.json", json.dumps(self.VECTORS))
        out, _ = tool("vectors", right)
        self.assertIn("2 cases, 1 passed, 0 failed, 1 skipped (", out)
        out, _ = tool("vectors", right, "--compat", "--engine", "scalar")
        self.assertEqual(out, "2 cases, 2 passed, 0 failed, 0 skipped (scalar)\n")
        wrong = self.path("wrong.json", json.dumps(self.VECTORS).replace("[0, 100]", "[1, 100]"))
        out, _ = tool("vectors", right, wrong, "--engine", "simd", status=1)
        self.assertIn(f"FAILED {wrong} one on simd: scores: expected [1, 100], found [0, 100]", out)
        self.assertIn("4 cases, 1 passed, 1 failed, 2 skipped (simd)", out)
        report = json.loads(tool("vectors", wrong, "--json", status=1)[0])
        self.assertEqual((report["cases"], report["failed"]), (2, 1))
        self.assert_one_line(["vectors", self.path("plugin.json", '{"plugin": "Node"}')],
                             'plugin.json: plugin: found "Node"')
        self.assert_one_line(["vectors", self.path("cut.json", '{"plugin"')], "cut.json:1")
        self.assert_one_line(["vectors", right, "--engine", "none"], "none")

    CLUSTER = {
        "kind": "List",
        "items": [
            {"kind": "Node", "metadata": {"name": "small"},
             "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}},
            {"kind": "Node", "metadata": {"name": "large"},
             "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "10"}}},
            {"kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
             "spec": {"containers": [{"name": "c", "resources": {
                 "requests": {"cpu": "2", "memory": "1Gi"}}}]}},
            {"kind": "Pod", "metadata": {"name": "huge", "namespace": "shop"},
             "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "64"}}}]}},
        ]}

    def test_explain(self):
        cluster = self.path("cluster.json", json.dumps(self.CLUSTER))
        one = json.loads(tool("explain", "--cluster", cluster, "--pod", "shop/web", "--json")[0])
        self.assertEqual([node["feasible"] for node in one["nodes"]], [False, True])
        self.assertIn("large", json.dumps(one["winner_name"] if "winner_name" in one else one))
        every = json.loads(tool("explain", "--cluster", cluster, "--all-pending", "--json")[0])
        self.assertEqual(len(every), 2)
        self.assertIn("0/2 nodes are available",
                      tool("explain", "--cluster", cluster, "--pod", "huge")[0])

    def test_explain_with_a_configuration(self):
        cluster = self.path("cluster.json", json.dumps(self.CLUSTER))
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"score": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": "NodeResourcesFit", "weight": 7}]}},
                "pluginConfig": [{"name": "NodeResourcesFit", "args": {
                    "scoringStrategy": {"type": "MostAllocated",
                                        "resources": [{"name": "cpu", "weight": 1}]}}}]}]}
        path = self.path("configuration.yaml", json.dumps(configuration))
        explained = json.loads(tool("explain", "--cluster", cluster, "--pod", "shop/web",
                                    "--policy", path, "--json")[0])
        best = [node for node in explained["nodes"] if node["feasible"]][0]
        # 2 of 8 cores.
        self.assertEqual([(score["score"], score["normalised"], score["weighted"])
                          for score in best["scores"]], [("most-allocated", 25, 175)])
        configuration["profiles"][0]["plugins"]["score"]["enabled"][0]["name"] = "NodeResourceFit"
        self.assert_one_line(["explain", "--cluster", cluster, "--pod", "shop/web", "--policy",
                              self.path("wrong.yaml", json.dumps(configuration))],
                             "profiles[0].plugins.score.enabled[0].name")

    def test_bad_clusters(self):
        text = json.dumps(self.CLUSTER)
        for name, content, expected in (
                ("cut.json", text[:len(text) // 2], "cut.json"),
                ("noise.json", random.Random(3).randbytes(3000), "noise.json"),
                ("deep.json", "[" * 100000, "deep.json"),
                ("twice.json", text.replace('"large"', '"small"'), "small"),
                ("quantity.json", text.replace('"8"', '"8 apples"'), "8 apples")):
            with self.subTest(name=name):
                self.assert_one_line(["explain", "--cluster", self.path(name, content),
                                      "--all-pending"], expected)
        good = self.path("good.json", text)
        self.assert_one_line(["explain", "--cluster", good, "--pod", "shop/wib"], "shop/web")
        self.assert_one_line(["explain", "--cluster", good, "--pod", "web", "--policy", "none"],
                             "default")


class Tune(ToolTest):
    FIELDS = ["inline_bytes", "one_shot_bytes", "sharded_bytes", "chunk_bytes", "chunks",
              "push", "expose_bytes", "stream_bytes"]

    def test_what_was_measured_is_kept_and_in_force(self):
        table = self.path("tuning.json")
        out, err = tool("tune", "--ranks", "2", "--samples", "1", "--file", table, "--json")
        entry = json.loads(out)
        self.assertEqual(entry["ranks"], 2)
        self.assertEqual(entry["machine"]["cpus"], os.cpu_count())
        self.assertEqual([*entry["tuning"], *entry["local"]], self.FIELDS)
        for field in ("inline_bytes", "one_shot_bytes", "chunks", "expose_bytes", "stream_bytes"):
            self.assertIn(f"penstock: tune: {field} ", err)
        with open(table, encoding="utf-8") as file:
            kept = json.load(file)
        self.assertEqual(kept["entries"], [entry])
        # What the file says is what a comm gets.
        kept["entries"][0]["tuning"]["chunks"] = 3
        self.path("tuning.json", json.dumps(kept))
        shown = json.loads(tool("tune", "--show", "--file", table, "--json")[0])
        self.assertEqual(shown["in_force"]["tuning"]["chunks"], 3)
        self.assertEqual(shown["entries"], kept["entries"])
        out, _ = tool("tune", "--show", PENSTOCK_TUNING=table, PENSTOCK_TUNING_SET="chunks=5")
        self.assertRegex(out, r"chunks +5 ")
        self.assertIn("measured with 2 ranks; PENSTOCK_TUNING_SET chunks=5", out)

    def test_without_a_table_it_is_what_is_built_in(self):
        out, _ = tool("tune", "--show", XDG_CONFIG_HOME=self.folder)
        self.assertIn("2 ranks: built in\n", out)
        for field in self.FIELDS:
            self.assertIn(f"  {field} ", out)

    def test_a_bad_table_is_refused_with_its_field(self):
        table = self.path("bad.json", '{"format": "penstock-tuning", "version": 1, "entries": [{}]}')
        for arguments in (["tune", "--show", "--file", table], ["tune", "--file", table]):
            self.assert_one_line(arguments, table, "entries[0].machine: it is missing")
        _, err = tool("run", "-n", "2", "--", "penstock", "perf", "barrier", status=2,
                      PENSTOCK_TUNING=table)
        self.assertIn("entries[0].machine: it is missing", err)
        self.assert_one_line(["tune", "--ranks", "1"], "1 is out of range; use 2..64")


class Conformance(ToolTest):
    def test_quick(self):
        out, _ = tool("conformance", "--engine", "scalar", "--quick")
        self.assertIn("REDUCE sum", out)
        reports = json.loads(tool("conformance", "--engine", "scalar", "--quick", "--json")[0])
        self.assertGreater(len(reports[0]["rows"]), 70)
        # An engine that fails its third descriptor is not conforming.
        out, _ = tool("conformance", "--engine", "fault:scalar;fail=3:internal", "--quick", status=1)
        self.assertRegex(out, "(?i)fail")


class Plugins(ToolTest):
    def engines(self, **variables):
        out, _ = tool("info", "--json", **variables)
        return {engine["name"]: engine for engine in json.loads(out)["engines"]}

    def test_the_card_comes_as_a_plugin(self):
        self.assertNotIn("card", self.engines(PENSTOCK_PLUGINS="none"))
        plugin = os.path.join(os.path.dirname(TOOL), "plugins", "penstock-card.so")
        if not os.path.exists(plugin):
            self.skipTest("it was not built")
        found = self.engines()["card"]
        self.assertIn("a card over a bus: ", found["reason"])
        self.assertEqual(self.engines(PENSTOCK_PLUGINS=plugin)["card"], found)
        self.assertEqual(self.engines(PENSTOCK_PLUGINS=os.path.dirname(plugin))["card"], found)

    def test_what_is_no_plugin_is_told(self):
        _, err = tool("info", PENSTOCK_PLUGINS=self.path("none.so"))
        self.assertIn("none.so", err)


def main():
    global TOOL
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    options, rest = parser.parse_known_args()
    TOOL = os.path.abspath(options.tool)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
