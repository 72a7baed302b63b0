// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"slices"
	"strings"
)

// MostOthers is the maximum number of names in OtherSubscriptions, and in an error. Names are cut to MostQuoted bytes.
const MostOthers = 5

// OtherSubscriptions exist on a topic and were not requested: a missing one may have a wrong name.
type OtherSubscriptions struct {
	Names []string
	// More is the number of those without a name here.
	More int
}

// lacks is the error of a topic without the subscription, which names those that exist. Conditions have this text, so
// the order is always the same.
func (t *topicState) lacks(topic, subscription string) error {
	names := slices.Clone(t.others.Names)
	for name, state := range t.subscriptions {
		if !state.missing && len(state.history.points) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	more := t.others.More + max(0, len(names)-MostOthers)
	for i, name := range names {
		names[i] = fmt.Sprintf("%q", Quote(name))
	}
	exist := strings.Join(names[:min(len(names), MostOthers)], ", ")
	switch {
	case exist == "":
		exist = "and has no other"
	case more > 0:
		exist = fmt.Sprintf("but %s and %d more", exist, more)
	default:
		exist = "but " + exist
	}
	return fmt.Errorf("%w: %s has no subscription %q, %s; it appears when the first replica connects",
		ErrSubscriptionNotFound, topic, subscription, exist)
}
