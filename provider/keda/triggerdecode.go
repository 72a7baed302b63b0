// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

const (
	// mostShown bounds the shown part of a value or a foreign key, mostNamed the number of foreign keys.
	mostShown = 60
	mostNamed = 5
)

// Decode decodes the metadata of a trigger of the ScaledObject. The error is response.Invalid with all problems, as far
// as they fit.
func Decode(object types.NamespacedName, metadata map[string]string) (Trigger, error) {
	d := draft{
		trigger:  Trigger{Object: object, Subject: Subject{Namespace: object.Namespace}},
		metadata: metadata, present: map[string]bool{}, wrong: map[string]bool{},
	}
	if object.Namespace == "" || object.Name == "" {
		d.problem("the request names no ScaledObject: scaledObjectRef must have a name and a namespace")
	}
	for name := range metadata {
		d.present[name] = true
		if own, found := strings.CutSuffix(name, fromEnv); found {
			d.present[own] = true
		}
	}
	d.decodeForm()
	d.decodeNames()
	for _, k := range keys {
		if value, set := metadata[k.name]; set && d.takes(k) {
			d.decodeValue(k, value)
		}
	}
	d.decodeStrategy()
	if len(d.problems) > 0 {
		return Trigger{}, response.Errorf(response.Invalid, "%s", problemText(d.problems))
	}
	return d.trigger, nil
}

// problemText returns one line of at most response.MaxTextBytes.
func problemText(problems []string) string {
	text := "trigger metadata: " + problems[0]
	for i, problem := range problems[1:] {
		more := fmt.Sprintf("; and %d more", len(problems)-1-i)
		if len(text)+len("; ")+len(problem)+len(more) > response.MaxTextBytes {
			text += more
			break
		}
		text += "; " + problem
	}
	return response.Shorten(text, response.MaxTextBytes)
}

type draft struct {
	trigger  Trigger
	metadata map[string]string
	// present are the keys that are set, with or without FromEnv.
	present map[string]bool
	// form is empty if it is ambiguous.
	form form
	// wrong are the keys with a wrong value, which need no further problems.
	wrong map[string]bool
	// problems are sentences without a full stop, each with a key, its value and the fix.
	problems []string
}

func (d *draft) problem(format string, args ...any) {
	d.problems = append(d.problems, fmt.Sprintf(format, args...))
}

// takes reports whether a key may be set with the form, if the form is known.
func (d *draft) takes(k key) bool { return d.form == "" || slices.Contains(k.forms, d.form) }

func (d *draft) decodeForm() {
	var set []string
	for _, f := range forms() {
		if d.present[string(f)] {
			set = append(set, string(f))
		}
	}
	switch {
	case len(set) == 1:
		d.form = form(set[0])
	case len(set) > 1:
		d.problem("%s exclude each other: keep one of them", enumerate(set, "and"))
		return
	case d.present[keySubscription]:
		d.form = formTopic
	default:
		d.problem("what to scale on is missing: set one of policy, target (such as Function/resize), function, sink, and " +
			"topic with subscription")
		return
	}
	for _, k := range keys {
		if k.required && d.takes(k) && !d.present[k.name] {
			d.problem("%s is missing: set %s, it %s", k.name, k.name, k.must)
		}
	}
}

// decodeNames rejects foreign keys. Their values are not shown: they may be from the environment of a container.
func (d *draft) decodeNames() {
	var foreign, fromEnvironment []string
	builtIn := map[string][]string{} // keys by what to do in their place
	for _, name := range slices.Sorted(maps.Keys(d.metadata)) {
		k, known := keyNamed(name)
		pulsarKey, _ := migrate.FindPulsarKey(name)
		switch {
		case known && d.takes(k):
		case pulsarKey.InTrigger != "":
			builtIn[pulsarKey.InTrigger] = append(builtIn[pulsarKey.InTrigger], name)
		case strings.HasSuffix(name, fromEnv):
			fromEnvironment = append(fromEnvironment, shown(name))
		default:
			foreign = append(foreign, shown(name))
		}
	}
	for _, instead := range slices.Sorted(maps.Keys(builtIn)) {
		d.problem("%s cannot be set, as in KEDA's pulsar trigger: %s", enumerate(builtIn[instead], "and"), instead)
	}
	if len(fromEnvironment) > 0 {
		d.problem("%s cannot be set: KEDA reads such values from the environment of the target's container, which a "+
			"Function or a policy does not have, and omits the key; set the value itself, without FromEnv", enumerate(
			some(fromEnvironment), "and"))
	}
	if len(foreign) > 0 {
		of := "a trigger"
		if d.form != "" {
			of = "a trigger with " + string(d.form)
		}
		d.problem("%s cannot be set: the keys of %s are %s", enumerate(some(foreign), "and"), of,
			strings.Join(Keys(string(d.form)), ", "))
	}
}

func (d *draft) decodeValue(k key, value string) {
	err := errFormat
	switch {
	case k.name == string(formTopic) && strings.Contains(value, "non-persistent://"):
		err = errors.New("must not have non-persistent topics, which keep no backlog: use persistent ones")
	case k.name == keyStrategy && value == string(v1alpha1.StrategyCapacity):
		err = d.capacity()
	case utf8.ValidString(value) && k.matches(value) && k.decode != nil:
		err = k.decode(&d.trigger, value)
	case utf8.ValidString(value) && k.matches(value):
		err = nil
	}
	switch {
	case errors.Is(err, errFormat):
		d.problem("%s is %q, %s", k.name, response.Shorten(value, mostShown), k.must)
	case err != nil:
		d.problem("%s is %q, %s", k.name, response.Shorten(value, mostShown), err)
	}
	d.wrong[k.name] = err != nil
}

// writePolicy is the fix for users who want no threshold.
const writePolicy = "to scale without one, write an AutoscalingPolicy of ten lines (mode: Recommend, minReplicas, " +
	"maxReplicas, scaleTargetRef) and set policy to its name instead"

// capacity is why a trigger cannot have this strategy.
func (d *draft) capacity() error {
	if d.form == formPolicy {
		return errors.New("which is in the decision of the policy: remove strategy to follow it")
	}
	return errors.New("which is for policies alone: set a threshold; " + writePolicy)
}

func (d *draft) decodeStrategy() {
	switch {
	case d.form == "" || d.wrong[keyStrategy]:
	case d.form == formPolicy:
		d.decodePolicyStrategy()
	case d.chooseStrategy():
		d.checkStrategy()
	}
}

// chooseStrategy uses the named strategy, or that of the threshold; it fails if they conflict or both are missing.
func (d *draft) chooseStrategy() bool {
	strategy := d.trigger.Strategy
	set := slices.DeleteFunc(d.thresholds(), func(name string) bool { return !d.present[name] })
	switch {
	case len(set) > 1:
		d.problem("%s belong to different strategies: keep one of them", enumerate(set, "and"))
		return false
	case !d.present[keyStrategy] && len(set) == 0:
		d.problem("a threshold is missing: set %s; %s", enumerate(d.thresholds(), "or"), writePolicy)
		return false
	case !d.present[keyStrategy]:
		strategy = strategyOf(set[0])
	case len(set) == 1 && strategyOf(set[0]) != strategy:
		d.problem("%s belongs to strategy %s, not to %s: change strategy or remove %s",
			set[0], strategyOf(set[0]), strategy, set[0])
		return false
	}
	d.trigger.Strategy = strategy
	return true
}

func (d *draft) checkStrategy() {
	strategy := d.trigger.Strategy
	switch k, _ := keyNamed(thresholds()[strategy]); {
	case !d.takes(k):
		d.problem("strategy %s cannot be set with %s: its consumers do not report how busy they are; use target, "+
			"function or sink", strategy, d.form)
	case !d.present[k.name]:
		d.problem("%s is missing, which strategy %s needs: it %s", k.name, strategy, k.must)
	}
}

// decodePolicyStrategy does the same for a policy, which has thresholds of its own.
func (d *draft) decodePolicyStrategy() {
	if !d.present[keyStrategy] && d.present[keyActivationMessages] {
		d.problem("%s does not apply to the decision of a policy: remove it, or set strategy to BacklogPerReplica, "+
			"RatePerReplica or Utilization", keyActivationMessages)
	}
}

func (d *draft) thresholds() []string {
	var names []string
	for _, k := range keys {
		if strategyOf(k.name) != "" && d.takes(k) {
			names = append(names, k.name)
		}
	}
	return names
}

func enumerate(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}

// some returns the first names, and the number of the rest.
func some(names []string) []string {
	if len(names) <= mostNamed {
		return names
	}
	return append(slices.Clone(names[:mostNamed-1]), fmt.Sprintf("%d more", len(names)-mostNamed+1))
}

// shown is a user's text as messages show it.
func shown(words string) string { return response.Shorten(backlog.Quote(words), mostShown) }
