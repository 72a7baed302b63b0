# Writes tables of docs/comparison.md out of what make bench-traces measured:
#
#   make bench-traces TRACES=traces && jq -rf docs/traces.jq bench/out/traces.json

def number($digits):
  if . == null then "–" else
    pow(10; $digits) as $one | (. * $one | round) as $n
    | ($n / $one | floor | tostring) + (if $digits > 0 then "." + (($n % $one) + $one | tostring)[1:] else "" end)
  end;

def mean: add / length;

# start 10s, objective 30s is 10/30
def short: capture("start (?<start>[0-9.]+)s, objective (?<objective>[0-9.]+)s") | "\(.start)/\(.objective)";

["keda-default10", "keda-tuned", "keda-expert", "ds2-10", "ds2-50", "flink-tuned", "simple", "capacity"] as $order
# differences that are worth telling: 5 % of the cost, 0.1 percentage points of messages
| 0.95 as $cheaper | 0.1 as $later
| . as $rows
| (map({key: "\(.trace) \(.setting) \(.controller)", value: .}) | from_entries) as $by
| def of($controller): $by["\(.trace) \(.setting) \($controller)"];
  "| controller | cost ÷ oracle | min to max | avoidable late pp | max | changes | of those of ds2-10 | ours is cheaper and no later in |",
  "|---|---|---|---|---|---|---|---|",
  ($order[] | . as $name | [$rows[] | select(.controller == $name)] | . as $all
    | (if $name == "capacity" then "**" else "" end) as $bold
    | "| \($bold)\($name)\($bold) | \(map(.cost_over_oracle | log) | mean | exp | number(2)) "
      + "| \(map(.cost_over_oracle) | min | number(2)) to \(map(.cost_over_oracle) | max | number(2)) "
      + "| \(map(.avoidable_late_pp) | mean | number(2)) | \(map(.avoidable_late_pp) | max | number(1)) "
      + "| \(map(.changes) | add | number(0)) | \(100 * (map(.changes) | add) / ([$rows[] | select(.controller == "ds2-10").changes] | add) | number(0)) % "
      + "| \(if $name == "capacity" then "–" else
          "\([.[] | select(of("capacity").cost_over_oracle < .cost_over_oracle and of("capacity").avoidable_late_pp <= .avoidable_late_pp)] | length) of \(length)" end) |"),
  "",
  "| trace | start / objective s | ours: cost ÷ oracle, avoidable late pp, changes | keda-expert | ds2-10 | ours beside keda-expert |",
  "|---|---|---|---|---|---|",
  ($rows[] | select(.controller == "capacity") | of("keda-expert") as $expert | of("ds2-10") as $ds2
    | def cell: "\(.cost_over_oracle | number(3)), \(.avoidable_late_pp | number(3)), \(.changes | number(0))";
      [if .cost_over_oracle > $expert.cost_over_oracle then "**dearer**" else empty end,
       if .avoidable_late_pp > $expert.avoidable_late_pp then "**later**" else empty end] as $lost
    | "| \(.trace) | \(.setting | short) | \(cell) | \($expert | cell) | \($ds2 | cell) | \($lost | join(", ")) |"),
  "",
  "| baseline | cheaper and no later: its cost ÷ oracle (ours) | less late and dearer: its avoidable late pp (ours), its cost ÷ oracle (ours) |",
  "|---|---|---|",
  ($order[] | select(. != "capacity") | . as $name | [$rows[] | select(.controller == $name) | . + {ours: of("capacity")}]
    | [.[] | select(.cost_over_oracle < $cheaper * .ours.cost_over_oracle and .avoidable_late_pp <= .ours.avoidable_late_pp + $later)
        | "\(.trace) \(.setting | short) \(.cost_over_oracle | number(2)) (\(.ours.cost_over_oracle | number(2)))"] as $cheap
    | [.[] | select(.avoidable_late_pp < .ours.avoidable_late_pp - $later and .cost_over_oracle >= $cheaper * .ours.cost_over_oracle)
        | "\(.trace) \(.setting | short) \(.avoidable_late_pp | number(2)) (\(.ours.avoidable_late_pp | number(2))), "
          + "\(.cost_over_oracle | number(2)) (\(.ours.cost_over_oracle | number(2)))"] as $prompt
    | "| \($name) | \(if $cheap == [] then "–" else $cheap | join(", ") end) | \(if $prompt == [] then "–" else $prompt | join(" · ") end) |")
