// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"io"
	"time"
)

// ReadWithGaps decodes a load in which rows may be any time apart, and may have no value: they are left out. Besides
// the columns of Read it knows two of any name. counted reports that rates are messages until the next row, to Spread.
func ReadWithGaps(from io.Reader, longest time.Duration) (l Load, counted bool, err error) {
	d := decoder{gap: longest.Seconds(), longest: longest.Seconds(), lenient: true}
	err = d.read(from)
	return d.load, d.counted, err
}

// Part is a load of the rows from one to before another.
func (l Load) Part(from, to int) Load {
	part := Load{rates: l.rates[from:to], replicas: l.replicas[from:to]}
	for _, at := range l.at[from:to] {
		part.at = append(part.at, at-l.at[from])
	}
	return part
}

// parseTime also takes what psql prints. A time without a zone is in UTC.
func parseTime(at string) (moment time.Time, err error) {
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateTime + "Z07", time.DateTime + "Z07:00"} {
		if moment, err = time.Parse(layout, at); err == nil {
			break
		}
	}
	return moment.UTC(), err //nolint:wrapcheck // the caller has a better one
}
