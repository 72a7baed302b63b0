// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import "strings"

// PulsarKey is a metadata key of KEDA's pulsar trigger.
type PulsarKey struct {
	Name string
	// InTrigger is what to do in a trigger of our scaler; empty where that has the same key.
	InTrigger string
	// InPolicy is what becomes of it in a policy.
	InPolicy string
}

// PulsarKeys are all of them.
//
// Source: KEDA 2.21, pkg/scalers/pulsar_scaler.go, pulsarMetadata, and pkg/scalers/authentication.
func PulsarKeys() []PulsarKey {
	all := []PulsarKey{
		{Name: "topic", InPolicy: "spec.subscription.topics"},
		{Name: "subscription", InPolicy: "spec.subscription.name"},
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
	all = append(all, PulsarKey{
		Name: "adminURL", InTrigger: connection,
		InPolicy: "spec.pulsar.adminURL, or pulsar.adminURL of the chart",
	})
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
