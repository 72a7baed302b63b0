# Writes tables of docs/comparison.md out of the results of make bench-queues, one table for each scenario:
#
#   jq -srf docs/queues.jq bench/out/queues/*.json

def number($digits):
  pow(10; $digits) as $one | (. * $one | round) as $n
  | ($n / $one | floor | tostring) + (if $digits > 0 then "." + (($n % $one) + $one | tostring)[1:] else "" end);

# a mean with the least and the most of all runs
def spread($digits):
  map(values) | if . == [] then "–" else
    (add / length | number($digits)) + (if min == max then "" else ", \(min | number($digits)) to \(max | number($digits))" end)
  end;

# the scenario of a variant is "<name>-<receiver queue size>"
group_by(.scenario | sub("-[0-9]+$"; ""))[] | (length as $all | group_by(.scenario)) as $variants
| "| queue | contender | runs | late % | latency p50 s | p99 s | max s | replica-hours | changes | redelivered for each removed replica |",
  "|---|---|---|---|---|---|---|---|---|---|",
  ($variants | sort_by(.[0].scenario | length)[] | (.[0].scenario | capture("-(?<queue>[0-9]+)$").queue) as $queue
    | length as $runs | (.[0].contenders | map(.name))[] as $name
    | [.[].contenders[] | select(.name == $name)]
    | "| \($queue) | \($name) | \($runs) | \(map(100 * .messages.lateRatio) | spread(2)) "
      + "| \(map(.messages.latencies.p50Nanoseconds / 1e9) | spread(1)) "
      + "| \(map(.messages.latencies.p99Nanoseconds / 1e9) | spread(1)) "
      + "| \(map(.messages.latencies.maxNanoseconds / 1e9) | spread(1)) "
      + "| \(map(.usage.replicaHours) | spread(2)) | \(map(.usage.scaleChanges) | spread(1)) "
      + "| \(map(select(.usage.removedReplicas > 0 and .redelivered != null) | .redelivered / .usage.removedReplicas) | spread(2)) |"),
  ""
