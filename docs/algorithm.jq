# Writes the tables of docs/algorithm.md out of what make bench-sim measured:
#
#   make bench-sim SEED=7 && jq -rf docs/algorithm.jq bench/out/sim.json

def number($digits):
  if . == null then "–" else
    (. * pow(10; $digits) | round) as $n | pow(10; $digits) as $one
    | ($n / $one | floor | tostring) + (if $digits > 0 then "." + (($n % $one) + $one | tostring)[1:] else "" end)
  end;

# rows: what users run today, other systems, the plain form, ours
["hpa-cpu80", "keda-default10", "keda-tuned", "keda-expert", "expert-fresh", "ds2-10", "ds2-50", "flink-default", "flink-tuned", "simple", "capacity", "oracle"] as $order
| ["simple", "keda-default10", "keda-tuned", "keda-expert", "ds2-10"] as $baselines
# differences that are worth telling: 5 % of the cost, 0.1 percentage points of messages
| 0.95 as $cheaper | 0.1 as $later
| "| controller | cost ÷ oracle | late % | avoidable late pp | actions | flaps | settle s (never) |",
  "|---|---|---|---|---|---|---|",
  (.sets["held-out"] as $set | $order[] | . as $name | $set[$name]
    | (if $name == "capacity" then "**" else "" end) as $bold
    | "| \($bold)\($name)\($bold) | \(.cost_over_oracle | number(2)) | \(.late_pct | number(2)) | \(.avoidable_late_pp | number(2)) | "
      + "\(.actions | number(0)) | \(.flaps | number(0)) | \(.settle_seconds | number(0)) (\(.unsettled_pct | number(0)) %) |"),
  "",
  "| baseline | cheaper and no later: its cost ÷ oracle (ours) | less late and dearer: its late % (ours; the oracle's), its cost ÷ oracle |",
  "|---|---|---|",
  (.sets.suite as $set | $baselines[] | . as $baseline
    | [$set[$baseline].scenarios | to_entries[] | {name: .key, cost: .value.cost_over_oracle, late: .value.late_pct,
        ours: $set.capacity.scenarios[.key], oracle: $set.oracle.scenarios[.key]}] as $all
    | [$all[] | select(.cost < $cheaper * .ours.cost_over_oracle and .late <= .ours.late_pct + $later)
        | "\(.name) \(.cost | number(2)) (\(.ours.cost_over_oracle | number(2)))"] as $cheap
    | [$all[] | select(.late < .ours.late_pct - $later and .cost >= $cheaper * .ours.cost_over_oracle)
        | "\(.name) \(.late | number(2)) (\(.ours.late_pct | number(2)); \(.oracle.late_pct | number(2))), \(.cost | number(2))"] as $prompt
    | "| \($baseline) | \(if $cheap == [] then "–" else $cheap | join(", ") end) | \(if $prompt == [] then "–" else $prompt | join(" · ") end) |")
