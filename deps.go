package deps

import (
	_ "github.com/apache/pulsar-client-go/pulsar"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/stretchr/testify/require"
	_ "golang.org/x/sync/errgroup"
	_ "gonum.org/v1/plot"
	_ "gonum.org/v1/plot/plotter"
	_ "gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/draw"
	_ "k8s.io/api/autoscaling/v2"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/dynamic"
	_ "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	_ "k8s.io/metrics/pkg/client/custom_metrics"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/custom-metrics-apiserver/pkg/cmd"
	_ "sigs.k8s.io/yaml"
)
