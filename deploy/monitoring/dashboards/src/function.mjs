// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Function: what one policy recommended, decided and had at any minute, and why.

import { annotation, dashboard, labelVariable, lines, number, row, table, timeline, units } from './parts.mjs';

const series = (name, labels = '') =>
  `pulsar_autoscaler_policy_${name}{namespace="$namespace", policy="$policy"${labels && `, ${labels}`}}`;

// One line, also after a change of the leader, which has another label `instance`.
const one = (name) => `max(${series(name)})`;

// Conditions that depend on an earlier one add no information.
const checked = 'reason!="NotChecked"';

const full = ' Needs --policy-metrics=Full.';

const since = (name, by) =>
  `max by (${by}) (${series(name)}) unless max by (${by}) (${series(name)} offset $__interval)`;

const changed = (name, sign) => `${one(name)} ${sign} max(${series(name)} offset $__interval)`;

function annotations() {
  return [
    annotation({ name: 'Scale-up decided', color: 'blue', expr: changed('desired_replicas', '>'),
      title: 'Scale-up decided' }),
    annotation({ name: 'Scale-down decided', color: 'green', expr: changed('desired_replicas', '<'),
      title: 'Scale-down decided' }),
    annotation({ name: 'Objective missed', color: 'red', expr: changed('objective_met', '<'),
      title: 'Objective missed' }),
    annotation({ name: 'Objective met again', color: 'dark-green', expr: changed('objective_met', '>'),
      title: 'Objective met again' }),
    annotation({ name: 'Hold begins', color: 'orange', expr: since('held', 'reason'), title: 'Held: {{reason}}' }),
    annotation({ name: 'Limit begins', color: 'purple', expr: since('limited', 'by'), title: 'Limited by {{by}}' }),
  ];
}

function now(builder) {
  return builder.withPanel(number({
    title: 'Wait', about: 'Estimated wait of a message that is published now.', unit: units.seconds, decimals: 1,
    expr: one('wait_seconds'), legend: 'Wait', none: 'unknown',
  })).withPanel(number({
    title: 'Objective', about: 'spec.latencyObjective of the policy.', unit: units.seconds,
    expr: one('latency_objective_seconds'), legend: 'Objective',
  })).withPanel(number({
    title: 'Late time', about: 'Time in the time range in which messages missed the objective.', unit: units.seconds,
    expr: `sum(increase(${series('late_seconds_total')}[$__range]))`, legend: 'Late', decimals: 0,
    steps: [[null, 'green'], [1, 'orange'], [60, 'red']],
  })).withPanel(number({
    title: 'Replicas running', about: 'Running replicas.', unit: units.count, expr: one('running_replicas'),
    legend: 'Running', decimals: 0, none: 'unknown',
  })).withPanel(number({
    title: 'Replicas desired', about: 'Desired replicas of the last decision.', unit: units.count,
    expr: one('desired_replicas'), legend: 'Desired', decimals: 0, none: 'unknown',
  })).withPanel(number({
    title: 'Held by', unit: units.count,
    about: 'The hold in force: why the controller does not follow the recommendation of the strategy.',
    expr: `max by (reason) (${series('held')})`, legend: '{{reason}}', none: 'nothing', names: true,
    steps: [[null, 'orange']],
  })).withPanel(table({
    title: 'What to do', labels: { type: 'Condition', status: 'Status', reason: 'Reason' },
    about: 'Conditions with an unexpected status now. The runbook has the fix for each reason.', height: 5,
    columns: [{ name: 'In force', unit: units.count,
      expr: `max by (type, status, reason) (${series('condition', checked)})` }],
    hide: ['Value'], none: 'All conditions are as expected',
  }));
}

function history(builder) {
  return builder.withPanel(lines({
    title: 'Replicas', unit: units.count, decimals: 0, steps: true, width: 12,
    about: 'Wanted is the recommendation of the strategy before holds and limits, desired the decision, spec what '
      + 'the HPA, KEDA or the controller wrote, and running the replicas that run.'
      + full.replace('Needs', 'Wanted needs'),
    list: [
      [one('max_replicas'), 'Maximum'], [one('wanted_replicas'), 'Wanted'], [one('desired_replicas'), 'Desired'],
      [one('spec_replicas'), 'Spec'], [one('running_replicas'), 'Running'], [one('min_replicas'), 'Minimum'],
    ],
    styles: { Maximum: ['red', true], Wanted: ['orange', true], Desired: ['blue'], Spec: ['purple'],
      Running: ['green'], Minimum: ['text', true] },
  })).withPanel(lines({
    title: 'Wait and objective', about: 'Estimated wait of a message that is published at that time.',
    unit: units.seconds, width: 12,
    list: [[one('wait_seconds'), 'Wait'], [one('latency_objective_seconds'), 'Objective']],
    styles: { Wait: ['blue'], Objective: ['red', true] },
  })).withPanel(timeline({
    title: 'Why: objective, hold, limit and conditions', height: 9,
    about: 'The objective (condition ObjectiveMet changes after 30 s), the hold, the limit, and conditions with an '
      + 'unexpected status, over time. The runbook explains each reason.',
    list: [
      [one('objective_met'), 'Objective'],
      [`max by (reason) (${series('held')})`, 'Held: {{reason}}'],
      [`max by (by) (${series('limited')})`, 'Limited by {{by}}'],
      [`max by (type, status, reason) (${series('condition', `type!="ScalingLimited", ${checked}`)})`,
        '{{type}} {{status}}: {{reason}}'],
    ],
    states: {
      Objective: { 0: ['missed', 'red'], 1: ['met', 'green'] },
      'Held: ': { 1: ['held', 'orange'] },
      'Limited by ': { 1: ['limited', 'purple'] },
      '[A-Z][A-Za-z]+ (True|False|Unknown): ': { 1: ['in force', 'yellow'] },
    },
  })).withPanel(lines({
    title: 'Messages', about: 'Messages published and processed per second.', unit: units.messages, width: 12,
    list: [[one('publish_rate'), 'Published'], [one('process_rate'), 'Processed']],
    styles: { Published: ['blue'], Processed: ['green'] },
  })).withPanel(lines({
    title: 'Backlog', unit: units.count, width: 12,
    about: 'Ready messages can be processed now; discounted messages are the part that does not count as work. '
      + 'Delayed messages are not due yet. Consumers hold unacknowledged messages.'
      + full.replace('Needs', 'All but ready messages need'),
    list: [
      [one('delayed_messages'), 'Delayed'], [one('discounted_messages'), 'Discounted'],
      [one('unacked_messages'), 'Unacknowledged'], [one('ready_messages'), 'Ready'],
    ],
    styles: { Ready: ['blue'], Discounted: ['orange'], Delayed: ['text'], Unacknowledged: ['purple'] },
  }));
}

function capacity(builder) {
  const uncertain = (sign) =>
    `max(${series('capacity_messages_per_second')} * (1 ${sign} ${series('capacity_uncertainty_ratio')}))`;
  return builder.withPanel(lines({
    title: 'Capacity of a replica', unit: units.messages,
    about: 'Messages that one busy replica processes, with one standard deviation.'
      + full.replace('Needs', 'The deviation needs'),
    list: [[one('capacity_messages_per_second'), 'Capacity'], [uncertain('+'), 'Upper'], [uncertain('-'), 'Lower']],
    styles: { Capacity: ['green'], Upper: ['text', true], Lower: ['text', true] }, fillBelow: ['Upper', 'Lower'],
  })).withPanel(lines({
    title: 'Busy', about: 'Share of time that replicas spend in calls of the function.' + full, unit: units.share,
    list: [[one('busy_ratio'), 'Busy']], styles: { Busy: ['green'] }, max: 1,
  })).withPanel(lines({
    title: 'Consumers', about: 'Running replicas, and consumers that are connected to Pulsar.' + full,
    unit: units.count, decimals: 0, steps: true,
    list: [[one('running_replicas'), 'Running'], [one('consumers'), 'Consumers']],
    styles: { Running: ['green'], Consumers: ['blue', true] },
  })).withPanel(lines({
    title: 'Oldest message', unit: units.seconds,
    about: 'Age of the oldest message of the backlog by the clock of its producer, measured every 30 s.' + full,
    list: [[one('oldest_message_age_seconds'), 'Oldest message'], [one('latency_objective_seconds'), 'Objective']],
    styles: { 'Oldest message': ['blue'], Objective: ['red', true] },
  })).withPanel(lines({
    title: 'Cost', about: 'Running replicas, averaged over the last minutes.', unit: units.count,
    list: [[`sum(rate(${series('replica_seconds_total')}[$__rate_interval]))`, 'Replicas']],
    styles: { Replicas: ['green'] },
  })).withPanel(lines({
    title: 'Late share of time', about: 'Share of time in which messages missed the objective.', unit: units.share,
    list: [[`sum(rate(${series('late_seconds_total')}[$__rate_interval]))`, 'Late']], styles: { Late: ['red'] }, max: 1,
  }));
}

function dataQuality(builder) {
  return builder.withPanel(lines({
    title: 'Age of the decision and of its reading', unit: units.seconds, width: 12,
    about: 'Age of the last decision and of the reading behind it. An old reading holds replicas.' + full,
    list: [[one('decision_age_seconds'), 'Decision'], [one('reading_age_seconds'), 'Reading']],
    styles: { Decision: ['blue'], Reading: ['purple'] },
  })).withPanel(lines({
    title: 'Known topics', about: 'Share of the input topics with a known backlog.' + full, unit: units.share,
    width: 12, list: [[one('coverage_ratio'), 'Known']], styles: { Known: ['green'] }, max: 1,
  }));
}

/** The dashboard of one policy. */
export function oneFunction() {
  const builder = dashboard({
    uid: 'pulsar-autoscaler-function', title: 'Pulsar autoscaler / Function',
    about: 'One policy: replicas, wait, backlog, and the reason for each decision.',
    variables: [
      labelVariable({ name: 'namespace', label: 'Namespace',
        query: 'label_values(pulsar_autoscaler_policy_info, namespace)' }),
      labelVariable({ name: 'policy', label: 'Policy',
        query: 'label_values(pulsar_autoscaler_policy_info{namespace="$namespace"}, policy)' }),
    ],
    annotations: annotations(),
  });
  now(builder.withRow(row('Now')));
  history(builder.withRow(row('Over time')));
  capacity(builder.withRow(row('Capacity and cost')));
  dataQuality(builder.withRow(row('Data quality')));
  return builder;
}
