// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"iter"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// exposition serves /metrics one family after another. promhttp gathers all of them first: 10,000 policies have some
// 200,000 samples, which take 50 MB.
type exposition struct {
	process  prometheus.Gatherer
	policies func() iter.Seq[*dto.MetricFamily]
}

// ServeHTTP implements http.Handler. With name[] in the query it has these families only.
func (e exposition) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...)
	w.Header().Set("Content-Type", string(format))
	encoder, names := expfmt.NewEncoder(w, format), r.URL.Query()["name[]"]
	write := func(family *dto.MetricFamily) {
		if len(names) == 0 || slices.Contains(names, family.GetName()) {
			_ = encoder.Encode(family) // the client may be gone, and the others do not depend on it
		}
	}
	// Libraries register the same families, such as go_*. Their errors do not count: the first series stays.
	families, _ := e.process.Gather()
	for _, family := range families {
		write(family)
	}
	for family := range e.policies() {
		write(family)
	}
}
