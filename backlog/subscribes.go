// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "cmp"

// Subscribes is what a consumer of one input asks for.
type Subscribes struct {
	Name string
	Type SubscriptionType
}

// Keys of the consumer properties that decide what a Java instance subscribes as.
const (
	PropertySubscriptionName = "subscriptionName"
	PropertySubscriptionType = "subscriptionType"
)

// With is what a Java instance asks for that loads an input's consumer properties over what it was told. The type may
// then be one that Pulsar does not know.
//
// Source: org.apache.pulsar.functions.source.PulsarSource.createConsumeBuilder (loadConf comes last); Python and Go
// pass the properties on as metadata.
func (s Subscribes) With(properties map[string]string) Subscribes {
	return Subscribes{
		Name: cmp.Or(properties[PropertySubscriptionName], s.Name),
		Type: SubscriptionType(cmp.Or(properties[PropertySubscriptionType], string(s.Type))),
	}
}

// Exists says whether Pulsar has subscriptions of the type.
func (t SubscriptionType) Exists() bool {
	return t == Exclusive || t == Shared || t == Failover || t == KeyShared
}
