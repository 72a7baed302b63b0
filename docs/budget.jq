# Compares a budget of late messages with the strict objective in docs/algorithm.md, on loads of which the strict one has
# no more late messages than the budget allows, out of what several seeds measured:
#
#   jq -srf docs/budget.jq bench/out/budget-*.json

def fixed($digits):
  pow(10; $digits) as $one | (. * $one | round) as $n
  | ($n / $one | floor | tostring) + "." + (($n % $one) + $one | tostring)[1:];

def mean: add / length;

1 as $allowed
| [.[].sets["held-out"] | .["capacity without last-percent"].scenarios as $spent | .capacity.scenarios | to_entries[]
    | select(.value.late_pct != null and .value.late_pct <= $allowed)
    | {cost: ($spent[.key].cost_over_oracle / .value.cost_over_oracle), late: $spent[.key].late_pct}]
| "| loads | cost x | attained % | beyond the budget: mean pp | max |",
  "|---|---|---|---|---|",
  "| \(length) | \(map(.cost | log) | mean | exp | fixed(3)) | \(100 - (map(.late) | mean) | fixed(2)) "
    + "| \(map([0, .late - $allowed] | max) | mean | fixed(3)) | \(map([0, .late - $allowed] | max) | max | fixed(2)) |"
