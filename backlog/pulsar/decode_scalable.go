// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"
	"io"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// scalableStats are the statistics of a scalable topic.
//
// Source: org.apache.pulsar.common.policies.data.ScalableTopicStats, of 5.0.0-M1 and as of apache/pulsar#26639.
type scalableStats struct {
	// segments are by name, and owned those that answered the broker; 5.0.0-M1 asks none.
	segments      []string
	owned         int
	subscriptions map[string]scalableSubscription
}

type scalableSubscription struct {
	kind    string
	backlog number
	// connected is the number of consumers with a session, and attached the largest number on one segment.
	connected, attached int64
}

// reportsBacklog reports whether the version has backlogs: from apache/pulsar#26639 on, also for a topic without a
// subscription.
func (s scalableStats) reportsBacklog() bool {
	for _, one := range s.subscriptions {
		if one.backlog.present {
			return true
		}
	}
	return s.owned > 0
}

// decodeScalableStats reads the answer of /admin/v2/scalable/{topic}/stats of any version.
func decodeScalableStats(r io.Reader) (scalableStats, error) {
	d := newStatsDecoder(r, backlog.Request{})
	s := scalableStats{subscriptions: map[string]scalableSubscription{}}
	err := d.object(func(key []byte) error {
		switch string(key) {
		case "segments": // of 5.0.0-M1
			return s.decodeSegments(d)
		case "layout":
			return d.object(func(key []byte) error {
				if string(key) != "segments" {
					return d.skip()
				}
				return s.decodeSegments(d)
			})
		case "subscriptions":
			return d.object(func(key []byte) error {
				name := validText(key)
				if err := d.answer.keep(subscriptionCost + len(name)); err != nil {
					return err
				}
				one, err := decodeScalableSubscription(d)
				s.subscriptions[name] = one
				return err
			})
		default:
			return d.skip()
		}
	})
	if err = d.finish(err); err != nil {
		return s, err
	}
	return s, s.validate()
}

// validate also rejects an answer that lacks some of the backlogs: they would count as 0.
func (s scalableStats) validate() error {
	if len(s.segments) == 0 {
		return errors.New("segments is missing")
	}
	for name, one := range s.subscriptions {
		if _, err := one.backlog.counter("msgBacklog"); err != nil && s.reportsBacklog() {
			return fmt.Errorf("subscription %s: %w", name, err)
		}
	}
	return nil
}

func (s *scalableStats) decodeSegments(d *statsDecoder) error {
	return d.object(func([]byte) error {
		if len(s.segments) >= maxSegments {
			return fmt.Errorf("more than %d segments", maxSegments)
		}
		var name, owner string
		err := d.object(func(key []byte) (err error) {
			switch string(key) {
			case "name":
				name, err = d.sharedText("name")
			case "ownerBroker":
				owner, err = d.sharedText("ownerBroker")
			default:
				err = d.skip()
			}
			return err
		})
		if owner != "" {
			s.owned++
		}
		s.segments = append(s.segments, name)
		return err
	})
}

func decodeScalableSubscription(d *statsDecoder) (s scalableSubscription, err error) {
	err = d.object(func(key []byte) (err error) {
		switch string(key) {
		case "type":
			s.kind, err = d.sharedText("type")
		case "msgBacklog":
			s.backlog, err = d.integer("msgBacklog")
		case "consumerCount": // of 5.0.0-M1
			var count number
			count, err = d.integer("consumerCount")
			s.connected = count.value
		case "segments":
			err = d.object(func([]byte) error {
				return eachField(d, "consumerCount", func() error {
					count, err := d.integer("consumerCount")
					s.attached = max(s.attached, count.value)
					return err
				})
			})
		case "consumers":
			err = d.array(func() error {
				return eachField(d, "connected", func() error {
					connected, err := d.boolean("connected")
					if connected {
						s.connected++
					}
					return err
				})
			})
		default:
			err = d.skip()
		}
		return err
	})
	return s, err
}

// eachField reads an object of which one field matters.
func eachField(d *statsDecoder, name string, read func() error) error {
	return d.object(func(key []byte) error {
		if string(key) != name {
			return d.skip()
		}
		return read()
	})
}
