// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Fleet: do all policies meet their objectives, and which ones are worst?

import { dashboard, labelVariable, lines, number, row, table, units } from './parts.mjs';

const series = (name, labels = '') =>
  `pulsar_autoscaler_policy_${name}{namespace=~"$namespace"${labels && `, ${labels}`}}`;

/** Policies for which the series exists, and 0 rather than nothing while no policy has it. */
const having = (name, labels) => `sum((${series(name, labels)} * 0 + 1) or on (namespace, policy) `
  + `(${series('info')} * 0))`;

const atMaximum = 'by="maxReplicas"';

const late = `sum by (namespace, policy) (increase(${series('late_seconds_total')}[$__range]))`;
const worst = `topk(10, ${late})`;

/** The value of each of the worst policies. */
const ofWorst = (expr) => `max by (namespace, policy) (${expr}) and on (namespace, policy) ${worst}`;

/** By how much the replicas were fewer than each policy's peak, on average. */
const running = `(max by (namespace, policy) (${series('running_replicas')}))[$__range:$__interval]`;
const saved = `sum(max_over_time(${running}) - avg_over_time(${running}))`;

const replicas = { Desired: ['blue'], Spec: ['purple'], Running: ['green'], Minimum: ['text', true] };

const openFunction = {
  title: 'Open ${__data.fields.Policy}',
  url: '/d/pulsar-autoscaler-function?${datasource:queryparam}&var-namespace=${__data.fields.Namespace}'
    + '&var-policy=${__data.fields.Policy}&${__url_time_range}',
};

function now(builder) {
  return builder.withPanel(number({
    title: 'Policies', about: 'Policies that the leader of the adapter measures.', unit: units.count,
    expr: `count(${series('info')})`, legend: 'Policies', decimals: 0,
  })).withPanel(number({
    title: 'Objective met', unit: units.share,
    about: 'Share of policies that meet their latency objective now. Policies without data do not count.',
    expr: `avg(${series('objective_met')})`, legend: 'Met', decimals: 1,
    steps: [[null, 'red'], [0.95, 'orange'], [0.99, 'green']],
  })).withPanel(number({
    title: 'Late', about: 'Policies that miss their latency objective now.', unit: units.count,
    expr: `sum(1 - ${series('objective_met')})`, legend: 'Late', decimals: 0, steps: [[null, 'green'], [1, 'red']],
  })).withPanel(number({
    title: 'At maximum', about: 'Policies that need more replicas than their maxReplicas.', unit: units.count,
    expr: having('limited', atMaximum), legend: 'At maximum', decimals: 0, steps: [[null, 'green'], [1, 'orange']],
  })).withPanel(number({
    title: 'Held', about: 'Policies with a hold: the controller does not follow the recommendation of the strategy.',
    unit: units.count, expr: having('held'), legend: 'Held', decimals: 0,
  })).withPanel(number({
    title: 'Replicas saved', unit: units.count,
    about: 'Mean over the time range of replicas below the peak: what a fixed number at the peak would add.',
    expr: saved, legend: 'Saved', decimals: 1, steps: [[null, 'green']],
  }));
}

function history(builder) {
  return builder.withPanel(lines({
    title: 'Objective met', unit: units.share,
    about: 'Share of policies that meet their latency objective. Policies without data do not count.',
    list: [[`avg(${series('objective_met')})`, 'Met']], styles: { Met: ['green'] }, max: 1,
  })).withPanel(lines({
    title: 'Late and at maximum', unit: units.count, decimals: 0, steps: true,
    about: 'Policies that are late, that need more than maxReplicas, and both: raise maxReplicas of those.',
    list: [
      [`sum(1 - ${series('objective_met')})`, 'Late'],
      [having('limited', atMaximum), 'At maximum'],
      [`sum((1 - ${series('objective_met')}) and on (namespace, policy) ${series('limited', atMaximum)}) `
        + `or sum(${series('info')} * 0)`, 'Both'],
    ],
    styles: { Late: ['red'], 'At maximum': ['orange'], Both: ['purple'] },
  })).withPanel(lines({
    title: 'Held by reason', about: 'Policies with a hold, by reason. The runbook explains each reason.',
    unit: units.count, decimals: 0, steps: true, stacked: true,
    list: [[`count by (reason) (${series('held')})`, '{{reason}}']],
  })).withPanel(lines({
    title: 'Replicas', unit: units.count, decimals: 0, steps: true, width: 12,
    about: 'Sums over all policies. Desired above spec: the HPA or KEDA has not acted yet. '
      + 'Spec above running: pods start or cannot start.',
    list: [
      [`sum(${series('desired_replicas')})`, 'Desired'],
      [`sum(${series('spec_replicas')})`, 'Spec'],
      [`sum(${series('running_replicas')})`, 'Running'],
      [`sum(${series('min_replicas')})`, 'Minimum'],
    ],
    styles: replicas,
  })).withPanel(lines({
    title: 'Messages', about: 'Sums over all policies: messages published and processed per second.',
    unit: units.messages, width: 12,
    list: [
      [`sum(${series('publish_rate')})`, 'Published'],
      [`sum(${series('process_rate')})`, 'Processed'],
    ],
    styles: { Published: ['blue'], Processed: ['green'] },
  }));
}

function worstTen() {
  const labels = { namespace: 'Namespace', policy: 'Policy' };
  return table({
    title: 'Worst ten', labels, linkOn: 'Policy', link: openFunction, height: 10,
    about: 'The policies with the most late time in the time range. The name opens the dashboard of a policy.',
    columns: [
      { name: 'Late', unit: units.seconds, expr: worst, decimals: 0 },
      { name: 'Wait', unit: units.seconds, expr: ofWorst(series('wait_seconds')), decimals: 1 },
      { name: 'Objective', unit: units.seconds, expr: ofWorst(series('latency_objective_seconds')) },
      { name: 'Backlog', unit: units.count, expr: ofWorst(series('ready_messages')) },
      { name: 'Desired', unit: units.count, expr: ofWorst(series('desired_replicas')) },
      { name: 'Running', unit: units.count, expr: ofWorst(series('running_replicas')) },
      { name: 'Maximum', unit: units.count, expr: ofWorst(series('max_replicas')) },
    ],
  });
}

/** The dashboard of all policies. */
export function fleet() {
  const builder = dashboard({
    uid: 'pulsar-autoscaler-fleet', title: 'Pulsar autoscaler / Fleet',
    about: 'All policies: objectives, holds, limits, and the cost of the replicas.',
    variables: [labelVariable({
      name: 'namespace', label: 'Namespace', query: 'label_values(pulsar_autoscaler_policy_info, namespace)', all: true,
    })],
  });
  now(builder.withRow(row('Now')));
  history(builder.withRow(row('Over time')));
  return builder.withRow(row('Policies')).withPanel(worstTen()).withPanel(table({
    title: 'Unexpected conditions', labels: { namespace: 'Namespace', policy: 'Policy', type: 'Condition',
      status: 'Status', reason: 'Reason' },
    about: 'Conditions with an unexpected status, except those that depend on an earlier one (NotChecked). '
      + 'The runbook has the fix for each reason.',
    columns: [{ name: 'In force', unit: units.count, expr: `max by (namespace, policy, type, status, reason) (`
      + `${series('condition', 'reason!="NotChecked"')})` }],
    hide: ['Value'], linkOn: 'Policy', link: openFunction, none: 'All conditions are as expected',
  }));
}
