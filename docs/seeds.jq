# Writes the table of seeds in docs/comparison.md out of what make bench-seeds measured:
#
#   make bench-seeds SEEDS="1 2 3"

def fixed($digits):
  if . == null then "–" else
    pow(10; $digits) as $one | (. * $one | round) as $n | (if $n < 0 then -$n else $n end) as $abs
    | (if $n < 0 then "-" else "" end) + ($abs / $one | floor | tostring)
      + (if $digits > 0 then "." + (($abs % $one) + $one | tostring)[1:] else "" end)
  end;

def mean(of): map(of) | if any(. == null) then null else add / length end;

[.[] | {seed, ours: .sets["held-out"].capacity, simple: .sets["held-out"].simple}
  | {seed: "\(.seed)", cost: .ours.cost_over_oracle, avoidable: .ours.avoidable_late_pp, late: .ours.late_pct,
     ceilings: .ours.false_ceilings, simpleCost: .simple.cost_over_oracle, simpleLate: .simple.late_pct}] as $all
| "| seed | cost ÷ oracle | avoidable late pp | late % | false ceilings | simple: cost ÷ oracle | simple: late % |",
  "|---|---|---|---|---|---|---|",
  (($all + [$all | {seed: "mean", cost: mean(.cost), avoidable: mean(.avoidable), late: mean(.late),
      ceilings: mean(.ceilings), simpleCost: mean(.simpleCost), simpleLate: mean(.simpleLate)}])[]
    | "| \(.seed) | \(.cost | fixed(3)) | \(.avoidable | fixed(3)) | \(.late | fixed(3)) | \(.ceilings | fixed(1)) | "
      + "\(.simpleCost | fixed(3)) | \(.simpleLate | fixed(3)) |")
