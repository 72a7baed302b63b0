// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// PatientLease are the flags of an adapter that no kubelet restarts: one that loses its Lease in a stall ends.
func PatientLease() []string { return []string{"--lease-duration=60s", "--lease-renew-deadline=50s"} }

// Config configures a stage. The zero value has shipped intervals.
type Config struct {
	// HPASyncPeriod is the sync period of the HPA controller; 0 is 15 s, Kubernetes' default.
	HPASyncPeriod time.Duration
	// AdapterFlags follow the stage's own, such as --poll-interval=2s.
	AdapterFlags []string
	// AdapterEnv entries ("KEY=value") are added to the environment of each adapter.
	AdapterEnv []string
	// AdminURL is of an existing Pulsar or a fake one: then the stage has neither Broker nor Mesh, and no AddFunction.
	// Empty is a real broker and package mesh.
	AdminURL string
	// Progress gets the progress of builds and downloads; nil is none.
	Progress io.Writer
	// Beside is another stage, of which this one shares the broker and the adapter's build, for a second control plane
	// within seconds; it must outlive this one. Names of Functions must differ, because their topics must.
	Beside *Stage
	// FeatureGates of the control plane, such as HPAScaleToZero=true; empty for its defaults.
	FeatureGates string
	// KEDA also runs, with this configuration, and a scaler for it; nil for neither.
	KEDA *keda.Config
	// Guests lets light replicas run Functions with an output that AddFunction did not create, in any namespace.
	Guests bool
	// WithoutAdapter makes the test start the product and apply its CRDs; Adapter is nil.
	WithoutAdapter bool
	// Controllers of kube-controller-manager, as in cluster.Config.
	Controllers []string
	// ControllerManagerArgs come last on the command line of kube-controller-manager.
	ControllerManagerArgs []string
	// ScalerFlags follow the stage's own flags of a scaler, such as --poll-interval=2s.
	ScalerFlags []string
}

// Stage is the started environment. Tests may use, pause and kill its parts directly.
type Stage struct {
	Cluster *cluster.Cluster
	Broker  *broker.Broker
	Mesh    *mesh.Operator
	Adapter *Adapter
	// KEDA and Scaler are nil without Config.KEDA. The adapter knows the scaler.
	KEDA   *keda.KEDA
	Scaler *Scaler
	// Client is an administrator's.
	Client client.WithWatch

	dir     string // what is written
	sources string // of the product
	built   string // the adapter's executable
	// scalerBuilt is the scaler's executable, scalerPort the port of the first scaler and scalerFlags the flags of all;
	// with Config.KEDA.
	scalerBuilt string
	scalerPort  int
	scalerFlags []string
	scalerCA    *cluster.Authority
	// ownBroker is true if the broker ends with the stage.
	ownBroker bool
	runners   runners
	// mu guards added, the adapters of AddAdapter.
	mu    sync.Mutex
	added []*Adapter
	stop  context.CancelFunc
	group *errgroup.Group
}

// Open starts the stage, which takes about 15 s once everything is built and downloaded. It lives until Close or the
// end of ctx. After an error nothing runs.
func Open(ctx context.Context, config Config) (_ *Stage, err error) {
	dir, err := os.MkdirTemp("", "pulsar-autoscaler-stage-")
	if err != nil {
		return nil, fmt.Errorf("making the stage's directory: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Stage{dir: dir, stop: stop, group: &errgroup.Group{}, runners: runners{byFunction: map[string]replica.Runner{}}}
	if config.Guests {
		s.runners.guests = replica.NewLight(nil)
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := s.startServers(ctx, config); err != nil {
		return nil, err
	}
	s.Client = s.Cluster.Client
	if config.AdminURL == "" {
		config.AdminURL = s.Broker.AdminURL()
		if err := s.startMesh(ctx); err != nil {
			return nil, err
		}
	}
	if config.WithoutAdapter {
		return s, nil
	}
	if s.Adapter, err = startAdapter(ctx, s, config); err != nil {
		return nil, err
	}
	if config.KEDA != nil {
		if err := s.startKEDA(ctx, config); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// OpenApart is Open of a stage that lives until Close: the end of ctx interrupts opening alone, so that an interrupted
// benchmark ends its parts in order.
func OpenApart(ctx context.Context, config Config) (*Stage, error) {
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	s, err := Open(lifetime, config)
	if err != nil {
		return nil, fmt.Errorf("setting the stage: %w", err)
	}
	return s, nil
}

func (s *Stage) startMesh(ctx context.Context) (err error) {
	s.Mesh, err = mesh.NewOperator(mesh.Config{
		REST: s.Cluster.RESTConfig(), Runner: &s.runners,
		StopTimeout: 5 * time.Second,
	})
	if err != nil {
		return err
	}
	s.group.Go(func() error { return s.Mesh.Run(ctx) })
	return nil
}

// startServers starts the control plane and the broker in parallel, and builds the adapter meanwhile.
func (s *Stage) startServers(ctx context.Context, config Config) error {
	var err error
	if s.sources, err = binaries.Checkout(); err != nil {
		return err
	}
	meshes, errMeshes := filepath.Glob(filepath.Join(s.sources, "test", "mesh", "crd", "*.yaml"))
	ours, err := filepath.Glob(filepath.Join(s.sources, "deploy", "crd", "*.yaml"))
	others, errOthers := filepath.Glob(filepath.Join(s.sources, "test", "stage", "crd", "*.yaml"))
	if err := errors.Join(err, errMeshes, errOthers); err != nil {
		return fmt.Errorf("listing the CRDs: %w", err)
	}
	if config.WithoutAdapter {
		ours = nil
	}
	// The first of two builds that need both cores is faster alone.
	if _, err := binaries.BuildControlPlane(ctx, config.Progress); err != nil {
		return err
	}
	if config.KEDA != nil {
		if others, err = s.prepareKEDA(ctx, config); err != nil { // the real definitions instead of our copies
			return err
		}
	}
	var gates []string
	if config.FeatureGates != "" {
		gates = []string{"--feature-gates=" + config.FeatureGates}
	}
	var starting errgroup.Group
	starting.Go(func() (err error) {
		s.Cluster, err = cluster.Start(ctx, cluster.Config{
			HPASyncPeriod: config.HPASyncPeriod, Progress: config.Progress, CRDs: slices.Concat(meshes, ours, others),
			Controllers: config.Controllers, APIServerArgs: gates,
			ControllerManagerArgs: slices.Concat(gates, config.ControllerManagerArgs),
		})
		return err
	})
	if other := config.Beside; other != nil {
		s.Broker, s.built = other.Broker, other.built
		return starting.Wait()
	}
	s.ownBroker, s.built = true, filepath.Join(s.dir, "adapter")
	starting.Go(func() (err error) {
		if config.AdminURL != "" {
			return nil
		}
		s.Broker, err = broker.Start(ctx, broker.Config{Progress: config.Progress})
		return err
	})
	if !config.WithoutAdapter {
		starting.Go(func() error { return Build(ctx, "./cmd/adapter", s.built) })
	}
	return starting.Wait()
}

// Close stops everything and waits for it. It may be called again.
func (s *Stage) Close() {
	if s.KEDA != nil {
		s.KEDA.Stop()
	}
	if s.Scaler != nil {
		s.Scaler.Kill()
	}
	if s.Adapter != nil {
		s.Adapter.Kill()
	}
	s.stop()
	_ = s.group.Wait() // it was stopped
	s.runners.close()
	if s.Cluster != nil {
		s.Cluster.Stop()
	}
	if s.Broker != nil && s.ownBroker {
		_ = s.Broker.Discard() // it was stopped
	}
	_ = os.RemoveAll(s.dir) // it is a temporary directory
}

// runners passes each Function to its runner.
type runners struct {
	// mu guards byFunction and closers.
	mu         sync.Mutex
	byFunction map[string]replica.Runner
	// closers close the runners of the stage, also those of Functions that were added again.
	closers []func()
	// guests runs all others; nil is none.
	guests *replica.Light
}

// add sets the runner of a Function. The test closes a runner without a closer.
func (r *runners) add(name string, runner replica.Runner, closer func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byFunction[name] = runner
	if closer != nil {
		r.closers = append(r.closers, closer)
	}
}

// Start implements replica.Runner.
func (r *runners) Start(ctx context.Context, in replica.Instance) (replica.Replica, error) {
	r.mu.Lock()
	runner := r.byFunction[in.Name]
	r.mu.Unlock()
	if runner == nil && r.guests != nil && in.Output != "" {
		return r.guests.Start(ctx, in)
	}
	if runner == nil {
		return nil, fmt.Errorf("function %s was not put on the stage with AddFunction", in.Name)
	}
	return runner.Start(ctx, in)
}

func (r *runners) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, closer := range r.closers {
		closer()
	}
	r.closers = nil
	clear(r.byFunction)
	if r.guests != nil {
		r.guests.Close()
	}
}
