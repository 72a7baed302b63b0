# Writes tables of docs/comparison.md out of what make bench-sim measured:
#
#   make bench-sim SEED=7 && jq -rf docs/comparison.jq bench/out/sim.json

def number($digits):
  if . == null then "–" else
    (. * pow(10; $digits) | round) as $n | pow(10; $digits) as $one
    | ($n / $one | floor | tostring) + (if $digits > 0 then "." + (($n % $one) + $one | tostring)[1:] else "" end)
  end;

def range($digits): if . == null then "–" else "\(.[0] | number($digits)) to \(.[1] | number($digits))" end;

# the scenario with the most of something
def worst(of): [.scenarios | to_entries[] | {key, most: (.value | of)} | select(.most != null)] | max_by(.most);

def listed($between): if . == [] then "–" else join($between) end;

# rows: what users run today, other systems, the plain form, ours
. as $root | ["hpa-cpu80", "keda-default10", "keda-tuned", "keda-expert", "expert-fresh", "ds2-10", "ds2-50", "flink-default", "flink-tuned", "simple", "capacity", "oracle"] as $order
| ($order - ["capacity", "oracle"]) as $baselines
# scenarios with something broken, slow or wrong, of the named ones
| "^(adapter-restart|cap-drop|counter-reset|crash-|delivered-drifts|failing|held-unacked|marker-never-zero|outage|partial-partitions|phantoms|pods-pending|poison|published-drifts|ratelimit|restarts-on-scale|slowdep|stuck-|wrongly-)" as $faults
# differences that are worth telling: 5 % of the cost, 0.1 percentage points of messages
| 0.95 as $cheaper | 0.1 as $later
| def bold($name): if $name == "capacity" then "**" else "" end;
  "| controller | cost ÷ oracle | 95 % | max | late % | avoidable late pp | 95 % | max | actions | flaps | settle s (never) |",
  "|---|---|---|---|---|---|---|---|---|---|---|",
  (.sets["held-out"] as $set | $order[] | . as $name | $set[$name]
    | "| \(bold($name))\($name)\(bold($name)) | \(.cost_over_oracle | number(2)) | \(.cost_over_oracle_95 | range(2)) "
      + "| \(worst(.cost_over_oracle).most | number(2)) | \(.late_pct | number(2)) | \(.avoidable_late_pp | number(2)) "
      + "| \(.avoidable_late_pp_95 | range(2)) | \(worst(.avoidable_late_pp).most | number(1)) | \(.actions | number(0)) "
      + "| \(.flaps | number(0)) | \(.settle_seconds | number(0)) (\(.unsettled_pct | number(0)) %) |"),
  "",
  # the named scenarios: patterns of load and Functions that work, then faults
  (.sets.suite as $set | true, false | . as $works
    | "| controller | cost ÷ oracle | min to max, in | avoidable late pp | max, in | changes of replicas |",
      "|---|---|---|---|---|---|",
      ($order[] | . as $name | [$set[$name].scenarios | to_entries[] | select((.key | test($faults) | not) == $works)
          | .value + {key} | select(.cost_over_oracle != null)]
        | map(.cost_over_oracle) as $costs | max_by(.cost_over_oracle) as $cost | max_by(.avoidable_late_pp) as $late
        | "| \(bold($name))\($name)\(bold($name)) | \($costs | map(log) | add / length | exp | number(2)) "
          + "| \($costs | min | number(2)) to \($cost.cost_over_oracle | number(1)), \($cost.key) "
          + "| \(map(.avoidable_late_pp | values) | add / length | number(2)) "
          + "| \($late.avoidable_late_pp | number(1)), \($late.key) | \(map(.actions) | add | number(0)) |"),
      ""),
  # every scenario in which another is better, of the named ones and of the random loads
  ("suite", "held-out" | . as $of
    | "| baseline | cheaper and no later: its cost ÷ oracle (ours) | less late and dearer: its late % (ours; the oracle's), its cost ÷ oracle |",
      "|---|---|---|",
      ($root.sets[$of] as $set | $baselines[] | . as $baseline
        | [$set[$baseline].scenarios | to_entries[] | {name: (.key | ltrimstr("held-out-")), cost: .value.cost_over_oracle,
            late: .value.late_pct, ours: $set.capacity.scenarios[.key], oracle: $set.oracle.scenarios[.key]}] as $all
        | [$all[] | select(.cost < $cheaper * .ours.cost_over_oracle and .late <= .ours.late_pct + $later)
            | "\(.name) \(.cost | number(2)) (\(.ours.cost_over_oracle | number(2)))"] as $cheap
        | [$all[] | select(.late < .ours.late_pct - $later and .cost >= $cheaper * .ours.cost_over_oracle)
            | "\(.name) \(.late | number(2)) (\(.ours.late_pct | number(2)); \(.oracle.late_pct | number(2))), \(.cost | number(2))"]
          as $prompt
        | "| \($baseline) | \($cheap | listed(", ")) | \($prompt | listed(" · ")) |"),
      "")
