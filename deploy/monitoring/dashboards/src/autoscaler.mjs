// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Autoscaler: does the adapter itself do its job?

import { dashboard, labelVariable, lines, number, row, units } from './parts.mjs';

const series = (name, labels = '') => `${name}{job=~"$job"${labels && `, ${labels}`}}`;
const ours = (name) => series(`pulsar_autoscaler_${name}`);

const rate = (name, by) => `sum by (${by}) (rate(${ours(name)}[$__rate_interval]))`;

// Results that do not occur are left out of the legend.
const results = (name) => `${rate(name, 'result')} > 0`;

const quantile = (q, of, by = '', window = '$__rate_interval') =>
  `histogram_quantile(${q}, sum by (${by ? `${by}, ` : ''}le) (rate(${of}[${window}])))`;

function now(builder) {
  return builder.withPanel(number({
    title: 'Replicas of the adapter', about: 'Replicas that Prometheus can scrape. All serve metrics, and one decides.',
    unit: units.count, expr: `sum(${series('up')})`, legend: 'Up', decimals: 0, steps: [[null, 'red'], [1, 'green']],
  })).withPanel(number({
    title: 'Leaders', about: 'Replicas that hold the Lease and decide. This must be 1.', unit: units.count,
    expr: `sum(${ours('leader')})`, legend: 'Leaders', decimals: 0, steps: [[null, 'red'], [1, 'green'], [2, 'red']],
  })).withPanel(number({
    title: 'Version', about: 'Versions of the running replicas.', unit: units.count,
    expr: `count by (version) (${ours('build_info')})`, legend: '{{version}}', names: true,
  })).withPanel(number({
    title: 'Policies', about: 'Policies that the leader measures.', unit: units.count,
    expr: `count(${ours('policy_info')})`, legend: 'Policies', decimals: 0, none: '0',
  })).withPanel(number({
    title: 'Breakers open', unit: units.count,
    about: 'Pulsar hosts with an open circuit breaker: their requests failed, and few are sent.',
    expr: `sum(${ours('source_hosts_backing_off')})`, legend: 'Open', decimals: 0,
    steps: [[null, 'green'], [1, 'red']],
  })).withPanel(number({
    title: 'Oldest decision', about: 'Age of the oldest decision of any policy. Needs --policy-metrics=Full.',
    unit: units.seconds, expr: `max(${ours('policy_decision_age_seconds')})`, legend: 'Oldest', decimals: 0,
    steps: [[null, 'green'], [30, 'orange'], [60, 'red']], none: 'unknown',
  }));
}

function pulsar(builder) {
  return builder.withPanel(lines({
    title: 'Requests to Pulsar', about: 'Requests to Pulsar\'s admin service, by result.', unit: units.requests,
    list: [[results('source_requests_total'), '{{result}}']], stacked: true,
  })).withPanel(lines({
    title: 'Request duration', unit: units.seconds,
    about: 'Time from sending a request to its decoded answer, and time in the queue of the host.',
    list: [
      [quantile(0.5, ours('source_request_duration_seconds_bucket')), 'Median'],
      [quantile(0.99, ours('source_request_duration_seconds_bucket')), '99 %'],
      [quantile(0.99, ours('source_wait_seconds_bucket')), 'Queue, 99 %'],
    ],
    styles: { Median: ['green'], '99 %': ['blue'], 'Queue, 99 %': ['orange'] },
  })).withPanel(lines({
    title: 'Poll lateness', unit: units.seconds,
    about: 'Delay of a poll of a topic after its due time, by Pulsar cluster. Late polls delay decisions.',
    list: [
      [quantile(0.5, ours('poll_lateness_seconds_bucket'), 'cluster'), 'Median {{cluster}}'],
      [quantile(0.99, ours('poll_lateness_seconds_bucket'), 'cluster'), '99 % {{cluster}}'],
    ],
  })).withPanel(lines({
    title: 'Topics', about: 'Polled topics, by Pulsar cluster.', unit: units.count, decimals: 0,
    list: [[`sum by (cluster) (${ours('topics')})`, '{{cluster}}']],
  })).withPanel(lines({
    title: 'Requests in flight', about: 'Requests to Pulsar that are in flight, and those in the queue of their host.',
    unit: units.count, decimals: 0,
    list: [
      [`sum(${ours('source_requests_in_flight')})`, 'In flight'],
      [`sum(${ours('source_requests_waiting')})`, 'Queued'],
    ],
    styles: { 'In flight': ['green'], Queued: ['orange'] },
  })).withPanel(lines({
    title: 'Breakers and implausible answers', unit: units.count, decimals: 1,
    about: 'Pulsar hosts with an open breaker, and implausible answers per minute, by result of the second request.',
    list: [
      [`sum(${ours('source_hosts_backing_off')})`, 'Breakers open'],
      [`sum by (result) (rate(${ours('implausible_answers_total')}[$__rate_interval])) * 60`,
        'Implausible, {{result}}'],
    ],
  }));
}

function decisions(builder) {
  return builder.withPanel(lines({
    title: 'Age of decisions', unit: units.seconds,
    about: 'Time since the last decision of each policy: the oldest, and the median. Needs --policy-metrics=Full.',
    list: [
      [`max(${ours('policy_decision_age_seconds')})`, 'Oldest'],
      [`quantile(0.5, ${ours('policy_decision_age_seconds')})`, 'Median'],
    ],
    styles: { Oldest: ['orange'], Median: ['green'] },
  })).withPanel(lines({
    title: 'Reconciles', about: 'Reconciles of policies, by result.', unit: units.perSecond, stacked: true,
    list: [[results('policy_reconciles_total'), '{{result}}']],
  })).withPanel(lines({
    title: 'Reconcile duration', about: 'Duration of a reconcile, by controller.', unit: units.seconds,
    list: [[quantile(0.99, series('controller_runtime_reconcile_time_seconds_bucket'), 'controller'),
      '99 % {{controller}}']],
  })).withPanel(lines({
    title: 'Writes', about: 'Writes of the controllers to Kubernetes, by result.', unit: units.perSecond,
    list: [
      [rate('policy_status_patches_total', 'result'), 'Statuses {{result}}'],
      [rate('policy_applies_total', 'result'), 'Autoscalers {{result}}'],
      [rate('policy_scales_total', 'result'), 'Replicas {{result}}'],
    ],
  })).withPanel(lines({
    title: 'Decision to running', unit: units.seconds,
    about: 'Time from a scale-up decision until its replicas run, over the last hour, by actuator.',
    list: [
      [quantile(0.5, ours('actuation_seconds_bucket'), 'actuator', '1h'), 'Median {{actuator}}'],
      [quantile(0.95, ours('actuation_seconds_bucket'), 'actuator', '1h'), '95 % {{actuator}}'],
    ],
  })).withPanel(lines({
    title: 'Metrics served', about: 'Requests of HorizontalPodAutoscalers for metrics, by result.',
    unit: units.requests, stacked: true, list: [[results('provider_requests_total'), '{{result}}']],
  }));
}

function process(builder) {
  return builder.withPanel(lines({
    title: 'Memory', unit: units.bytes,
    about: 'Resident memory, and GOMEMLIMIT, which is 90 % of the memory limit of the container.',
    list: [
      [series('process_resident_memory_bytes'), 'Resident {{instance}}'],
      [`max(${series('go_gc_gomemlimit_bytes')} < 1e15)`, 'Limit'],
      [`sum(${ours('decoding_bytes')})`, 'Answers being decoded'],
    ],
    styles: { Limit: ['red', true] },
  })).withPanel(lines({
    title: 'CPU', about: 'CPU cores in use, by replica of the adapter.', unit: units.count, decimals: 2,
    list: [[`rate(${series('process_cpu_seconds_total')}[$__rate_interval])`, '{{instance}}']],
  })).withPanel(lines({
    title: 'Goroutines', about: 'Goroutines, by replica of the adapter. Steady growth is a leak.',
    unit: units.count, decimals: 0, list: [[series('go_goroutines'), '{{instance}}']],
  }));
}

/** The dashboard of the adapter itself. */
export function autoscaler() {
  const builder = dashboard({
    uid: 'pulsar-autoscaler-autoscaler', title: 'Pulsar autoscaler / Autoscaler',
    about: 'The adapter itself: polls, decisions, writes and memory.',
    variables: [labelVariable({
      name: 'job', label: 'Job', query: 'label_values(pulsar_autoscaler_leader, job)',
    })],
  });
  now(builder.withRow(row('Now')));
  pulsar(builder.withRow(row('Pulsar')));
  decisions(builder.withRow(row('Decisions')));
  process(builder.withRow(row('Process')));
  return builder;
}
