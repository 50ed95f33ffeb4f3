#!/usr/bin/env python3
"""penstock run: ranks, their output, their ends, and what they leave behind.

usage: run_test.py --tool FILE [unittest arguments]
"""

import os
import signal
import subprocess
import sys
import time

from tool_case import CLEAN, TOOL, ToolTest, is_alive, main, pools_of, tool, wait_until


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


if __name__ == "__main__":
    main()
