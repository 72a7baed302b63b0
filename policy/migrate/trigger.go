// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/schedule"
)

// trigger is one of a ScaledObject.
type trigger struct {
	Type              string            `json:"type"`
	Metadata          map[string]string `json:"metadata"`
	AuthenticationRef *struct {
		Name string `json:"name"`
	} `json:"authenticationRef"`
}

func (one trigger) isPulsar() bool { return one.Type == "pulsar" }

// What to do where topics or subscription are unknown, and where Pulsar is.
const (
	byHand = "write the policy yourself (examples/deployment.yaml)"
	setURL = "set spec.pulsar.adminURL of the policy, or pulsar.adminURL of the chart"
)

// fromEnv ends keys with the name of a variable of the target's container.
const fromEnv = "FromEnv"

// topicName is the pattern of v1alpha1.TopicName, without persistent://.
var topicName = regexp.MustCompile(`^[-=:._A-Za-z0-9]+/[-=:._A-Za-z0-9]+/[^/ \t\n]+$`)

// triggers are those of a ScaledObject that is being translated.
type triggers struct {
	*translator
	draft       *draft
	title       string
	scaled      scaled
	all         []trigger
	environment map[string]string
}

func (t triggers) translate() {
	for i, one := range t.all {
		name := fmt.Sprintf("trigger %d (%s)", i+1, one.Type)
		switch {
		case one.isPulsar():
			t.pulsar(name, one)
		case one.Type == "cron":
			t.cron(name, i, one.Metadata)
		default:
			t.lost("%s has no counterpart in a policy: %s", name, keepScaledObject)
		}
	}
	d := t.draft
	switch {
	case t.scaled.describes:
		d.note("topic, subscription, adminURL: %s itself says what it consumes, and where.", t.scaled.ref.Kind)
	case d.subscription == nil || len(d.subscription.Topics) == 0:
		d.incomplete = true // and the problem is known
	default:
		d.subscription.Type = v1alpha1.SubscriptionShared
		d.comment(fieldSubscription, "topic and subscription of %s. KEDA does not know the type: set the one that the "+
			"consumers use.", names(d.origins))
	}
}

// lost records a trigger that the policy lacks, so that the ScaledObject has to go on.
func (t triggers) lost(format string, args ...any) {
	t.draft.keeps = true
	t.problem(t.title, format, args...)
}

// pulsar translates a pulsar trigger.
func (t triggers) pulsar(name string, one trigger) {
	d := t.draft
	for _, key := range slices.Sorted(maps.Keys(one.Metadata)) {
		known, found := FindPulsarKey(strings.TrimSuffix(key, fromEnv))
		switch {
		case !found:
			d.note("%s: KEDA's pulsar trigger does not have this key.", key)
		case known.InPolicy != "":
			d.note("%s: %s.", key, known.InPolicy)
		}
	}
	if one.AuthenticationRef != nil {
		d.note("authenticationRef %s: the adapter needs credentials of its own, or spec.pulsar.authSecret and tlsConfig "+
			"(docs/pulsar-permissions.md).", one.AuthenticationRef.Name)
	}
	if t.scaled.describes {
		return
	}
	subscription, topic := t.value(name, one, "subscription"), t.value(name, one, "topic")
	if subscription == "" || topic == "" {
		return // and the problem is known
	}
	if !t.adminURL(name, one) {
		return
	}
	topic = strings.TrimPrefix(topic, "persistent://")
	if d.subscription == nil {
		d.subscription = &v1alpha1.Subscription{Name: subscription}
	}
	switch s := d.subscription; {
	case !topicName.MatchString(topic):
		t.lost("%s has topic %q, which is not tenant/namespace/topic: %s", name, topic, byHand)
	case s.Name != subscription:
		t.lost("%s reads subscription %s, and a policy has one: here it is %s. Scale the consumers of each by a "+
			"Deployment and a policy of their own, or keep KEDA", name, subscription, s.Name)
	case len(s.Topics) == maxTopics:
		t.lost("%s has topic %s, and a policy has at most %d: use topicsPattern", name, topic, maxTopics)
	case !slices.Contains(s.Topics, v1alpha1.TopicName(topic)):
		s.Topics = append(s.Topics, v1alpha1.TopicName(topic))
	}
}

// value is that of a key, or of the container's variable that it names; empty for none, which is a problem.
func (t triggers) value(name string, one trigger, key string) string {
	if value := one.Metadata[key]; value != "" {
		return value
	}
	variable := one.Metadata[key+fromEnv]
	if value := t.environment[variable]; value != "" {
		t.draft.note("%s%s: the value of variable %s of the container now. The policy does not follow it.", key, fromEnv,
			variable)
		return value
	}
	fix := byHand
	if key == "adminURL" {
		fix = setURL
	} else {
		t.draft.keeps = true
	}
	if variable == "" {
		t.problem(t.title, "%s has no %s: %s", name, key, fix)
		return ""
	}
	t.problem(t.title, "%s takes %s from variable %s of the container, with no literal value there: %s", name, key,
		variable, fix)
	return ""
}

// adminURL keeps the address of Pulsar. It returns false for another one than that of earlier triggers.
func (t triggers) adminURL(name string, one trigger) bool {
	d, address := t.draft, t.value(name, one, "adminURL")
	if address == "" {
		return true // and the problem is known
	}
	parsed, err := url.Parse(address)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.User != nil ||
		strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" {
		t.problem(t.title, "%s has adminURL %q, which is not http://host:port: %s", name, address, setURL)
		return true
	}
	if d.spec.Pulsar != nil && d.spec.Pulsar.AdminURL != address {
		t.lost("%s reads from %s, and a policy from one Pulsar: here it is %s", name, address, d.spec.Pulsar.AdminURL)
		return false
	}
	d.spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: address}
	d.comment(fieldPulsar, "adminURL of the trigger. The adapter must allow its host (value pulsar.allowedHosts of the "+
		"chart). Leave it out if it is pulsar.adminURL of the chart.")
	return true
}

// cron translates a cron trigger into a schedule, which the policy evaluates once to be sure that it can.
func (t triggers) cron(name string, at int, metadata map[string]string) {
	d := t.draft
	desired, err := strconv.ParseInt(metadata["desiredReplicas"], 10, 32)
	s := v1alpha1.Schedule{
		Name: v1alpha1.ScheduleName("cron-" + strconv.Itoa(at+1)), TimeZone: metadata["timezone"],
		Start: v1alpha1.CronExpression(metadata["start"]), End: v1alpha1.CronExpression(metadata["end"]),
	}
	if err == nil {
		s.MinReplicas = new(min(int32(desired), d.spec.MaxReplicas))
		_, err = schedule.At(v1alpha1.AutoscalingPolicySpec{ScalingSpec: v1alpha1.ScalingSpec{
			MaxReplicas: d.spec.MaxReplicas, Schedules: []v1alpha1.Schedule{s},
		}}, time.Unix(0, 0))
	}
	switch {
	case err != nil:
		t.lost("%s is no schedule: %v. Write spec.schedules of the policy", name, err)
	case len(d.spec.Schedules) == maxSchedules:
		t.lost("%s is more than the %d schedules of a policy: join some", name, maxSchedules)
	default:
		d.spec.Schedules = append(d.spec.Schedules, s)
		d.comment(fieldSchedules, "The cron triggers: desiredReplicas is minReplicas of the schedule.")
	}
}

// PulsarKey is a metadata key of KEDA's pulsar trigger.
type PulsarKey struct {
	Name string
	// InTrigger is what to do in a trigger of our scaler; empty where that has the same key.
	InTrigger string
	// InPolicy is what becomes of it in a policy; empty for what the spec has.
	InPolicy string
}

// PulsarKeys are all of them.
//
// Source: KEDA 2.21, pkg/scalers/pulsar_scaler.go, pulsarMetadata, and pkg/scalers/authentication.
func PulsarKeys() []PulsarKey {
	all := []PulsarKey{
		{Name: "topic"},
		{Name: "subscription"},
		{
			Name:      "msgBacklogThreshold",
			InTrigger: "set messagesPerReplica, which counts messages and not batches",
			InPolicy: "the policy learns what one replica processes. To keep a threshold add strategy BacklogPerReplica, " +
				"which counts messages, where KEDA counts entries (batches)",
		},
		{
			Name: "activationMsgBacklogThreshold", InTrigger: "set activationMessages",
			InPolicy: "one message that is due wakes a replica",
		},
		{
			Name:      "isPartitionedTopic",
			InTrigger: "set topic to the topic without a partition: partitions are found",
			InPolicy:  "partitions are found",
		},
	}
	const connection = "set connection to a name in --connections-file of the scaler (value scaler.connections of the " +
		"chart), or leave it out for the scaler's own Pulsar"
	all = append(all, PulsarKey{Name: "adminURL", InTrigger: connection})
	for _, name := range []string{
		"authModes", "bearerToken", "tls", "oauthTokenURI", "scope", "clientID", "endpointParams",
	} {
		all = append(all, PulsarKey{
			Name: name, InTrigger: connection,
			InPolicy: "credentials of the adapter, or spec.pulsar.authSecret and tlsConfig (docs/pulsar-permissions.md)",
		})
	}
	return all
}

// FindPulsarKey returns the key of that name. KEDA accepts EndpointParams too.
func FindPulsarKey(name string) (PulsarKey, bool) {
	for _, key := range PulsarKeys() {
		if key.Name == name || key.Name == "endpointParams" && strings.EqualFold(name, key.Name) {
			return key, true
		}
	}
	return PulsarKey{}, false
}
