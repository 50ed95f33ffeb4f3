#!/usr/bin/env python3
"""penstock replay, vectors and explain.

usage: scheduling_test.py --tool FILE [unittest arguments]
"""

import json
import random

from tool_case import ToolTest, main, tool


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


if __name__ == "__main__":
    main()
