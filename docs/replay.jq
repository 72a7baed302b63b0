# Writes the table "Simulated and real" of docs/comparison.md out of what make bench-replay measured, of one run or more:
#
#   jq -srf docs/replay.jq bench/out/replay.json

def fixed($digits):
  pow(10; $digits) as $one | (. * $one | round) as $n
  | ($n / $one | floor | tostring) + "." + (($n % $one) + $one | tostring)[1:];

def mean: add / length;

# a mean with the least and the most, if they differ
def cell($least; $most; $digits):
  [mean, ($least | min), ($most | max)] | map(fixed($digits))
  | .[0] + (if .[1] == .[2] then "" else ", \(.[1]) to \(.[2])" end);

def real($figure; $digits): map(.real[$figure]) | cell(.; .; $digits);
def simulated($figure; $digits):
  map(.sim_low[$figure]) as $least | map(.sim_high[$figure]) as $most | map(.sim[$figure]) | cell($least; $most; $digits);

# the largest difference of replica-hours, as a share
0.15 as $goal
| "| example | contender | setting | replica-hours | simulated | real ÷ simulated | late % | simulated |",
  "|---|---|---|---|---|---|---|---|",
  # the runs of each contender, in the order of the scenarios
  (add | to_entries | map(.value + {order: .key}) | group_by([.name, .contender]) | sort_by(.[0].order)[]
    | ((map(.real.replica_hours) | mean) / (map(.sim.replica_hours) | mean)) as $ratio
    | (if $ratio > 1 + $goal or $ratio < 1 - $goal then "**" else "" end) as $bold
    | "| \(.[0].name) | \(.[0].contender) | \(.[0].setting) "
      + "| \(real("replica_hours"; 3)) | \(simulated("replica_hours"; 3)) | \($bold)\($ratio | fixed(2))\($bold) "
      + "| \(real("late_pct"; 1)) | \(simulated("late_pct"; 1)) |")
