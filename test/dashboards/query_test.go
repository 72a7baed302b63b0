// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/dashboards"
)

func TestFill(t *testing.T) {
	values := map[string]string{"namespace": "media", "__range": "1h"}
	for name, tt := range map[string]struct{ expression, want string }{
		"a variable of the dashboard":  {`up{namespace="$namespace"}`, `up{namespace="media"}`},
		"a variable in braces":         {`up{namespace="${namespace}"}`, `up{namespace="media"}`},
		"a variable of Grafana":        {`rate(x[$__range])`, `rate(x[1h])`},
		"a longer name is another one": {`up{job="$namespaces"}`, `up{job="$namespaces"}`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, dashboards.Fill(tt.expression, values))
		})
	}
}

func TestSeries(t *testing.T) {
	for name, tt := range map[string]struct {
		expression string
		want       []string
	}{
		"a selector":                {`up{job="a_b"}`, []string{"up"}},
		"an aggregation":            {`sum by (reason) (held{a="x"})`, []string{"held"}},
		"a function of a rate":      {`histogram_quantile(0.99, sum by (le) (rate(x_bucket[5m])))`, []string{"x_bucket"}},
		"a comparison":              {`sum(a >= bool b) or on (n, p) c * 0`, []string{"a", "b", "c"}},
		"a set and a parenthesis":   {`(1 - met) and on (n) topk(10, late)`, []string{"late", "met"}},
		"an offset and a subquery":  {`a offset $__interval - avg_over_time(b[$__range:$__interval])`, []string{"a", "b"}},
		"a recording rule":          {`policy:saved_replicas:avg1d > 1e15`, []string{"policy:saved_replicas:avg1d"}},
		"a keyword before brackets": {`a unless (b)`, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, dashboards.Series(tt.expression)) })
	}
}
