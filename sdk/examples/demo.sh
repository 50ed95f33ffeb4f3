#!/usr/bin/env bash
# Both jobs with their figures, each verified. `./run demo` calls it with penstock on PATH; a pool in
# /dev/shm and nothing else is needed. A published cluster trace is taken when it is at hand: in
# $PENSTOCK_TRACES ("none" takes none), or in a folder data/traces beside the checkout.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
checkout=$(cd -- "$here/../.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
ranks=4
wrong=0

heading() { printf '\n== %s\n' "$*"; }
verdict() { # status sentence
  if [ "$1" -eq 0 ]; then printf '   ok: %s\n' "$2"; else printf '   WRONG: %s\n' "$2"; wrong=1; fi
}
field() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"; }

heading "1. Collectives: $ranks processes that share a pool of two memory devices"
penstock run -n $ranks --devices 2 -- penstock perf all_reduce -b 8 -e 16M -f 16 -d bfloat16 -n 10
for collective in all_reduce broadcast reduce all_gather reduce_scatter all_to_all gather scatter \
  send_recv barrier; do
  status=0
  penstock run -n $ranks --devices 2 -- penstock perf "$collective" -b 8 -e 1M -f 32 -n 3 -w 1 \
    > "$work/perf" 2>&1 || { status=1; cat "$work/perf"; }
  verdict $status "$collective, 8 B to 1 MiB: every byte on every rank as defined"
done

heading "2. Placement: a cluster trace, replayed until demand is 130 % of its GPUs"
shopt -s nullglob
traces=("${checkout%/*}"/*/data/traces/alibaba-gpu-2023)
[ -n "${PENSTOCK_TRACES:-}" ] && traces=("$PENSTOCK_TRACES")
trace=
for folder in "${traces[@]}"; do
  [ -r "$folder/openb_node_list_gpu_node.csv" ] && trace=$folder && break
done
if [ -n "$trace" ]; then
  printf '   the Alibaba GPU trace of 2023 (1213 nodes, 6212 GPUs, 8152 pods), from %s\n' "$trace"
  input=(--nodes "$trace/openb_node_list_gpu_node.csv" --pods "$trace/openb_pod_list_default.csv")
else
  printf '   a made-up cluster and task list with the shape of the Alibaba GPU trace of 2023\n'
  input=(--synthetic)
fi
for policy in random dot-product gpu-packing gpu-clustering best-fit; do
  penstock replay "${input[@]}" --policy $policy --seeds 3 --inflate 1.3 --json > "$work/$policy"
  printf '   %-15s %6.2f %% of all GPU thousandths allocated, mean of 3 seeds, %9.0f decisions/s\n' \
    $policy "$(field "$work/$policy" 'd["means"][0]["mean"]')" \
    "$(field "$work/$policy" 'max(r["decisions_per_second"] for r in d["results"])')"
done
status=0
for engine in scalar simd; do
  penstock replay "${input[@]}" --policy best-fit --inflate 1.3 --seed 1 --engine $engine --json \
    > "$work/$engine"
done
same='[d[k] for k in ("gpu_alloc_pct", "placed", "dropped", "curve")]'
[ "$(field "$work/scalar" "$same")" = "$(field "$work/simd" "$same")" ] || status=1
verdict $status 'the engines scalar and simd place every task alike'
if [ -n "$trace" ]; then
  status=0
  python3 - "$work" <<'PY' || status=1
import json, sys
published = {"random": (87.07, 88.03), "best-fit": (92.87, 93.25)}  # minimum and maximum of 10 seeds
for policy, (low, high) in published.items():
    mean = json.load(open(f"{sys.argv[1]}/{policy}"))["means"][0]["mean"]
    if not low - 0.2 <= mean <= high + 0.2:
        sys.exit(f"   {policy}: {mean} is not in the published band {low}..{high}")
PY
  verdict $status 'random and best-fit lie in the bands published for this trace (FGD, ATC 2023)'
fi

heading "3. Why there? Two pods of a small Kubernetes cluster"
for pod in shop/web-2 ml/train-1; do
  penstock explain --cluster "$here/cluster/cluster.json" --pod "$pod"
  printf '\n'
done
decided=$(penstock explain --cluster "$here/cluster/cluster.json" --pod shop/web-2 --json |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["winner"]["node"])' || true)
status=0
[ "$decided" = work-2 ] || status=1
verdict $status "shop/web-2 goes to work-2, the one node without a taint and with port 8080 free"

heading "4. The card: both jobs on simulated hardware"
if command -v penstock-card-demo > /dev/null; then
  for bus in verilator systemc; do
    status=0
    penstock-card-demo $bus > "$work/card" 2>&1 || status=$?
    if [ $status -eq 2 ]; then printf '   this build has no bus %s\n' $bus; continue; fi
    cat "$work/card"
    verdict $status "the card over the bus $bus gives the bits of scalar"
  done
else
  printf '   this build has no simulated card\n'
fi

heading "Done"
if [ $wrong -eq 0 ]; then sum='everything shown above was verified'; else sum='see above'; fi
verdict $wrong "$sum"
exit $wrong
