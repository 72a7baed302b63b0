// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// form is the kind of a trigger's subject, named by the key that selects it.
type form string

const (
	formPolicy   form = "policy"
	formTarget   form = "target"
	formFunction form = "function"
	formSink     form = "sink"
	formTopic    form = "topic"
)

// forms are all of them, in the order of the documentation.
func forms() []form { return []form{formPolicy, formTarget, formFunction, formSink, formTopic} }

// measured are the forms of triggers with a strategy and threshold of their own.
func measured() []form { return []form{formTarget, formFunction, formSink, formTopic} }

// Keys that are used outside of the table.
const (
	keySubscription       = "subscription"
	keyConnection         = "connection"
	keyStrategy           = "strategy"
	keyMessages           = "messagesPerReplica"
	keyRate               = "messagesPerSecondPerReplica"
	keyPercent            = "targetPercent"
	keyActivationMessages = "activationMessages"
)

// fromEnv ends the keys of values that KEDA takes from the environment of the scale target's container. It keeps the
// key, and omits it if the environment lacks the variable.
//
// Source: KEDA 2.21, pkg/scalers/external_scaler.go, parseExternalScalerMetadata.
const fromEnv = "FromEnv"

// key is a key of a trigger's metadata. Decode and Schema both use the table of keys.
type key struct {
	name string
	// forms with which it may be set, or has to be.
	forms    []form
	required bool
	// pattern of the whole value, in the common syntax of Go's and JavaScript's regular expressions; most is the longest
	// value in characters.
	pattern string
	most    int
	// must is the text for the pattern and what decode checks, after "key is value, ".
	must string
	// about is the key's description in the schema.
	about string
	// decode stores a matching value in the trigger, or returns what is wrong with it, after "key is value, "; nil for
	// KEDA's own keys.
	decode func(*Trigger, string) error

	format *regexp.Regexp
}

func (k key) matches(value string) bool {
	return len([]rune(value)) <= k.most && k.format.MatchString(value)
}

// Parts of patterns.
const (
	// patternName matches names of Kubernetes objects (RFC 1123 subdomain).
	patternName = `[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*`
	mostName    = 253
	// patternEntity matches tenants and namespaces of Pulsar (org.apache.pulsar.common.naming.NamedEntity).
	patternEntity = `[-=:.0-9A-Za-z_]+`
	// patternLocal matches local names in a namespace. Pulsar allows spaces and commas too, which a list with commas
	// cannot have.
	patternLocal     = `[^ ,/\\\x00-\x1f\x7f]+`
	patternComponent = `(` + patternEntity + `/` + patternEntity + `/)?` + patternLocal
	patternTopic     = ` *((persistent://)?` + patternEntity + `/` + patternEntity + `/)?` + patternLocal + ` *`

	mostTopics = 100
)

// keys is the table, sorted by name. It is never modified.
//
// Source of the bounds: the fields of the same meaning in api/v1alpha1.
//
//nolint:gochecknoglobals // a table of regular expressions, compiled once
var keys = tabulate(append(kedaKeys(), append(subjectKeys(), strategyKeys()...)...))

func tabulate(table []key) []key {
	for i := range table {
		table[i].format = regexp.MustCompile(`^(` + table[i].pattern + `)$`)
	}
	slices.SortFunc(table, func(a, b key) int { return cmp.Compare(a.name, b.name) })
	return table
}

// kedaKeys are KEDA's own, of every external scaler; it reads them and passes them on.
//
// Source: KEDA 2.21, pkg/scalers/external_scaler.go, externalScalerMetadata; each may come from the environment.
func kedaKeys() []key {
	var own []key
	for name, about := range map[string]string{
		"scalerAddress": "KEDA's own: host:port of this scaler.",
		"enableTLS":     "KEDA's own: true to speak TLS with this scaler.",
		"unsafeSsl":     "KEDA's own: true to leave this scaler's certificate unchecked.",
	} {
		for _, suffix := range []string{"", fromEnv} {
			own = append(own, key{
				name: name + suffix, forms: forms(), pattern: `[^\x00]*`, most: 4096, about: about,
				must: "must be at most 4096 characters",
			})
		}
	}
	return own
}

// subjectKeys select what is measured and where.
func subjectKeys() []key {
	return []key{
		{
			name: string(formPolicy), forms: []form{formPolicy}, required: true, pattern: patternName, most: mostName,
			must: "must be the name of an AutoscalingPolicy in the ScaledObject's namespace",
			about: "Name of an AutoscalingPolicy in the ScaledObject's namespace: replicas follow its decision, or one of " +
				"its strategies.",
			decode: func(t *Trigger, value string) error { t.Subject.Policy = value; return nil },
		},
		{
			name: string(formTarget), forms: []form{formTarget}, required: true, most: len("StatefulSet/") + mostName,
			pattern: `(Function|Sink|Source|StatefulSet)/` + patternName,
			must: "must be Function, Sink, Source or StatefulSet and a name in the ScaledObject's namespace, such as " +
				"Function/resize",
			about:  "Kind and name of an object with instances in the ScaledObject's namespace, such as Function/resize.",
			decode: decodeTarget,
		},
		componentKey(formFunction, function.KindFunction),
		componentKey(formSink, function.KindSink),
		{
			name: string(formTopic), forms: []form{formTopic}, required: true, most: 8192,
			pattern: patternTopic + `(,` + patternTopic + `)*`,
			must: "must be up to 100 persistent topics with commas between them, each a name in public/default or " +
				"tenant/namespace/topic",
			about: "Topics separated by commas, each a name in public/default, tenant/namespace/topic, or that after " +
				"persistent://.",
			decode: decodeTopics,
		},
		{
			name: keySubscription, forms: []form{formTopic}, required: true, pattern: `[^\x00-\x1f\x7f]+`, most: 1024,
			must:   "must be the subscription's name as Pulsar spells it",
			about:  "Name of the subscription on the topics; of a function it is tenant/namespace/name.",
			decode: func(t *Trigger, value string) error { t.Subject.Subscription = value; return nil },
		},
		{
			name: keyConnection, forms: []form{formFunction, formSink, formTopic}, most: 63,
			pattern: `[a-z0-9]([-a-z0-9]*[a-z0-9])?`,
			must:    "must be the name of a connection of the scaler: lower-case letters, digits and dashes",
			about:   "Name of one of the scaler's connections to Pulsar. Default: the scaler's own.",
			decode:  func(t *Trigger, value string) error { t.Subject.Connection = value; return nil },
		},
	}
}

// componentKey names what a function worker runs.
func componentKey(f form, kind function.Kind) key {
	return key{
		name: string(f), forms: []form{f}, required: true, pattern: patternComponent, most: 3 * mostName,
		must:   "must be a name, which is looked for in public/default, or tenant/namespace/name",
		about:  "A " + string(kind) + " of the function worker: a name in public/default, or tenant/namespace/name.",
		decode: func(t *Trigger, value string) error { return decodeComponent(t, kind, value) },
	}
}

// strategyKeys select how replicas follow from it.
func strategyKeys() []key {
	return []key{
		{
			name: keyStrategy, forms: forms(), pattern: "BacklogPerReplica|RatePerReplica|Utilization", most: 32,
			must: "must be BacklogPerReplica, RatePerReplica or Utilization",
			about: "How replicas are computed. Default: the strategy of the threshold. With policy: one of its strategies. " +
				"Default: its decision.",
			decode: func(t *Trigger, value string) error { t.Strategy = v1alpha1.StrategyType(value); return nil },
		},
		{
			name: keyMessages, forms: measured(), pattern: "[1-9][0-9]{0,11}|1000000000000", most: 13,
			must:   "must be a whole number from 1 to 1000000000000",
			about:  "Target of strategy BacklogPerReplica: ready messages for each replica.",
			decode: decodeThreshold,
		},
		{
			name: keyRate, forms: measured(), pattern: `[0-9]{1,13}(\.[0-9]{1,9})?[mkMGT]?`, most: 24,
			must: "must be messages per second from 0.001 to 10^12, in thousandths, such as 100 or 2500m",
			about: "Target of strategy RatePerReplica: published messages per second for each replica, at least 0.001, " +
				"such as 100 or 2500m.", decode: decodeRate,
		},
		{
			name: keyPercent, forms: []form{formTarget, formFunction, formSink}, pattern: "[1-9][0-9]?|100", most: 3,
			must:   "must be a whole number from 1 to 100",
			about:  "Target of strategy Utilization: busy time of each replica, in percent.",
			decode: decodeThreshold,
		},
		{
			name: keyActivationMessages, forms: forms(), pattern: "0|[1-9][0-9]{0,11}|1000000000000", most: 13,
			must:   "must be a whole number from 0 to 1000000000000",
			about:  "Ready messages up to which a trigger with a threshold is inactive. Default: 0.",
			decode: decodeActivation,
		},
	}
}

// thresholds are the strategies with a threshold, with its key.
func thresholds() map[v1alpha1.StrategyType]string {
	return map[v1alpha1.StrategyType]string{
		v1alpha1.StrategyBacklogPerReplica: keyMessages, v1alpha1.StrategyRatePerReplica: keyRate,
		v1alpha1.StrategyUtilization: keyPercent,
	}
}

// strategyOf returns the strategy of a threshold key; empty for other keys.
func strategyOf(name string) v1alpha1.StrategyType {
	for strategy, threshold := range thresholds() {
		if threshold == name {
			return strategy
		}
	}
	return ""
}

func keyNamed(name string) (key, bool) {
	at, found := slices.BinarySearchFunc(keys, name, func(k key, name string) int { return strings.Compare(k.name, name) })
	if !found {
		return key{}, false
	}
	return keys[at], true
}

// Keys returns the sorted names that a user may set with the key of the subject (policy, target, function, sink or
// topic), or with any of them if it is empty; without KEDA's own.
func Keys(subject string) []string {
	var names []string
	for _, k := range keys {
		if k.decode != nil && (subject == "" || slices.Contains(k.forms, form(subject))) {
			names = append(names, k.name)
		}
	}
	return names
}

var errFormat = errors.New("out of bounds")

const (
	defaultTenant, defaultNamespace = "public", "default"

	// mostRate is 10^12.
	mostRate = "1T"
)

func decodeTarget(t *Trigger, value string) error {
	kind, name, _ := strings.Cut(value, "/")
	if len(name) > mostName {
		return errFormat
	}
	t.Subject.Target = Target{Kind: kind, Name: name}
	return nil
}

func decodeComponent(t *Trigger, kind function.Kind, value string) error {
	parts := strings.Split(value, "/")
	if len(parts) == 1 {
		parts = []string{defaultTenant, defaultNamespace, value}
	}
	if slices.ContainsFunc(parts, isStep) ||
		slices.ContainsFunc(parts, func(part string) bool { return len(part) > mostName }) {
		return errFormat
	}
	t.Subject.Component = function.Component{Kind: kind, Tenant: parts[0], Namespace: parts[1], Name: parts[2]}
	return nil
}

// isStep reports whether a part of a name would change the path of a URL.
func isStep(part string) bool { return part == "." || part == ".." }

func decodeTopics(t *Trigger, value string) error {
	names := strings.Split(value, ",")
	if len(names) > mostTopics {
		return fmt.Errorf("has %d topics, must have at most %d: use another trigger for the rest", len(names), mostTopics)
	}
	for i, name := range names {
		names[i] = strings.Trim(name, " ")
		if slices.ContainsFunc(strings.Split(names[i], "/"), isStep) {
			return errFormat
		}
	}
	t.Subject.Topics = strings.Join(backlog.NewSubscription(backlog.Cluster{}, "", names...).Topics, ",")
	return nil
}

// decodeThreshold decodes whole numbers: their pattern is exact.
func decodeThreshold(t *Trigger, value string) (err error) {
	t.Threshold, err = strconv.ParseFloat(value, 64)
	return err
}

func decodeActivation(t *Trigger, value string) (err error) {
	t.ActivationMessages, err = strconv.ParseInt(value, 10, 64)
	return err
}

func decodeRate(t *Trigger, value string) error {
	quantity, err := resource.ParseQuantity(value)
	if err != nil || quantity.Sign() <= 0 || quantity.Cmp(resource.MustParse(mostRate)) > 0 || !inThousandths(quantity) {
		return errFormat
	}
	// Exact decimals: 300m is 0.3 and not 0.30000000000000004.
	t.Threshold, err = strconv.ParseFloat(quantity.AsDec().String(), 64)
	return err
}

// inThousandths reports whether KEDA writes a threshold as it is: it rounds to three decimals.
//
// Source: KEDA 2.21, pkg/scalers/scaler.go, quantityFromFloat64.
func inThousandths(rate resource.Quantity) bool { return rate.RoundUp(resource.Milli) }
