// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// unknownReasons maps the error of a missing reading to the reason of the condition.
func unknownReasons() []struct {
	err    error
	reason string
} {
	return []struct {
		err    error
		reason string
	}{
		// ErrStale wraps its cause, so it comes first.
		{backlog.ErrStale, v1alpha1.ReasonStale},
		{backlog.ErrNotTracked, v1alpha1.ReasonNotTracked},
		{backlog.ErrNoData, v1alpha1.ReasonNoDataYet},
		{backlog.ErrPartial, v1alpha1.ReasonPulsarUnavailable}, // no partition answered
		{backlog.ErrTopicNotFound, v1alpha1.ReasonTopicNotFound},
		{backlog.ErrSubscriptionNotFound, v1alpha1.ReasonSubscriptionNotFound},
		{backlog.ErrFunctionNotFound, v1alpha1.ReasonFunctionNotFound},
		{backlog.ErrNoWorker, v1alpha1.ReasonNoFunctionWorker},
		{backlog.ErrUnauthenticated, v1alpha1.ReasonCredentialsRefused},
		{backlog.ErrHostNotAllowed, v1alpha1.ReasonHostNotAllowed},
		{backlog.ErrForbidden, v1alpha1.ReasonPermissionMissing},
		{backlog.ErrUnreachable, v1alpha1.ReasonPulsarUnreachable},
		{backlog.ErrUnavailable, v1alpha1.ReasonPulsarUnavailable},
		{backlog.ErrProtocol, v1alpha1.ReasonUnexpectedAnswer},
		{backlog.ErrImplausible, v1alpha1.ReasonImplausibleAnswer},
		{backlog.ErrUnsupported, v1alpha1.ReasonUnsupported},
		{backlog.ErrTooManyTopics, v1alpha1.ReasonTooManyTopics},
	}
}

// UnknownReason is the condition reason for a missing reading.
func UnknownReason(err error) string {
	for _, row := range unknownReasons() {
		if errors.Is(err, row.err) {
			return row.reason
		}
	}
	return v1alpha1.ReasonUnknown
}

// backlogKnown is Unknown rather than False until the first answer, and while Pulsar is not polled.
func backlogKnown(o plan.Observed) metav1.Condition {
	switch {
	case o.NothingToDecide():
		return notChecked()
	case partlyKnown(o.Reading):
		return no(v1alpha1.ReasonPartialAnswer, partialAnswer(o.Reading))
	case outdated(o.Measured, o.Now) != nil:
		return no(v1alpha1.ReasonStale, outdated(o.Measured, o.Now).Error())
	case unsupported(o) != nil:
		return no(v1alpha1.ReasonUnsupported, unsupported(o).Error())
	case o.Unknown == nil && o.Reading != nil && o.Reading.PushRefused != nil:
		return yes(v1alpha1.ReasonPushRefused, wholeAnswer(o.Target)+
			"; brokers do not report its first message, for which it is polled: "+o.Reading.PushRefused.Error())
	case o.Unknown == nil:
		return yes(v1alpha1.ReasonMeasured, wholeAnswer(o.Target))
	case errors.Is(o.Unknown, backlog.ErrNoData) || errors.Is(o.Unknown, backlog.ErrNotTracked):
		return unsure(UnknownReason(o.Unknown), o.Unknown.Error())
	default:
		return no(UnknownReason(o.Unknown), o.Unknown.Error())
	}
}

// unsupported is why the strategies can never decide by this reading; nil if they can, or there is none.
func unsupported(o plan.Observed) error {
	if o.Unknown == nil && o.Reading != nil {
		return policy.Unsupported(policy.Input{Spec: o.Policy.Spec, Reading: *o.Reading})
	}
	return nil
}

// partlyKnown reports whether topics are missing, beyond the first answer of new ones.
func partlyKnown(r *backlog.Reading) bool {
	return r != nil && !r.Coverage.Complete() && !r.Coverage.FirstAnswers()
}

// outdated is why the last two polls failed, such as a broker that hangs; nil if they did not. Decisions use the last
// answer for longer. The second poll fails when the answer is two poll intervals old, and after a timeout; later if the
// topics were at rest.
func outdated(m plan.Measured, now time.Time) error {
	const polls = 2.25
	if m.Reading == nil || m.Reading.Trouble == nil ||
		now.Sub(m.Reading.At).Seconds() < polls*pollInterval(m).Seconds()+m.Rested.Seconds() {
		return nil
	}
	return fmt.Errorf("%w: no good answer since %s: %w", backlog.ErrStale, m.Reading.At.UTC().Format(time.RFC3339),
		m.Reading.Trouble)
}

// pollInterval is a third of FreshFor.
func pollInterval(m plan.Measured) time.Duration { return m.FreshFor / 3 }

// partialAnswer names the topics that are missing.
func partialAnswer(r *backlog.Reading) string {
	return r.Coverage.Err().Error() + "; replicas are added for the known ones, and none is removed"
}

// wholeAnswer reports that all topics are known, and which inputs are left out.
func wholeAnswer(target *plan.Target) string {
	const all, mostNamed = "Pulsar answers for every input topic", 5
	if target == nil {
		return all
	}
	leftOut := target.Subscription.NonPersistent()
	if len(leftOut) == 0 {
		return all
	}
	names := strings.Join(leftOut[:min(len(leftOut), mostNamed)], ", ")
	if more := len(leftOut) - mostNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return all + " that is persistent; the others keep no backlog and are left out: " + names
}
