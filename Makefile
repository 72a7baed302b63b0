# Commands of pulsar-autoscaler. Tools come from the pinned module in tools/, real servers from test/binaries and
# test/distribution; both are built or fetched once and cached outside the tree.

GO      ?= go
RUN     ?= .
PULSAR  ?= 4.0.8
VERSIONS ?= 4.0.8 4.2.4 5.0.0-M1
KEEP    ?=
COUNT   ?= 6
SEED    ?= 1
SEEDS   ?= 1 2 3
RUNS    ?= 3
TIMEOUT ?= 30m
# Tests of a package on real parts at once: they wait more than they work, so it is more than there are processors.
PARALLEL     ?= 6
# Packages at once.
PACKAGES     ?= 2
POLICIES     ?= 1000
SCENARIOS    ?= step keda wave cron pipeline
TRACES       ?=
CONTROLLER   ?= ^(keda-default10|keda-tuned|keda-expert|ds2-10|ds2-50|flink-tuned|simple|capacity)$$
VERSION      ?=
REGISTRY     ?=
PLATFORM     ?=

# One set of flags for all builds, so that a package is compiled once for the product, the tests and the control plane,
# also in another clone. Paths of this machine would tell clones apart, and debug information takes an eighth of a build.
# What is released has its own (tools/release). The race detector alone needs C. With grpc's traces, which none reads,
# the linker keeps every method of the Kubernetes API: 28 MB of the adapter (Kubernetes' own builds have the tag too).
TAGS := -tags=grpcnotrace
export GOFLAGS := $(filter-out -buildvcs=% -trimpath -gcflags=% -tags=%,$(GOFLAGS)) -buildvcs=false -trimpath -gcflags=all=-dwarf=false $(TAGS)
export CGO_ENABLED := 0

# tool NAME is the path of a pinned tool, built on first use.
tool = $$(cd tools && $(GO) tool -n $(1))

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## The main job on this machine: real Pulsar, real Kubernetes control plane, real HPA (KEEP=1 leaves it running)
	@sh test/needs
	@echo 'Compiling what prepares the demo (half a minute the first time) ...'
	@PULSAR=$(PULSAR) $(GO) run ./test/prepare demo
	@PULSAR=$(PULSAR) bin/demo $(if $(KEEP),-keep)

.PHONY: build
build: ## Build the binaries into bin/
	GOFLAGS= $(GO) build -trimpath $(TAGS) -o bin/ ./cmd/...

# release is the program of tools/release: the same commit gives the same bytes on any machine.
release = cd tools/release && $(GO) run . -root $(CURDIR) -out $(CURDIR)/dist

.PHONY: image
image: ## OCI images of the programs for linux/amd64 and linux/arm64 into dist/images, without a container engine
	$(call release)

.PHONY: push
push: ## Build and push the images of adapter and scaler, and print how to install them: make push REGISTRY=<registry and path> (PLATFORM=linux-amd64 for one platform)
	@$(call release) -push -registry '$(REGISTRY)' -platform '$(PLATFORM)'

.PHONY: image-verify
image-verify: ## Build the images twice, the second time in a clone elsewhere, and fail when they are not the same
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	  git clone -q --no-hardlinks . "$$dir/clone"; \
	  (cd tools/release && $(GO) run . -root $(CURDIR) -out "$$dir/here") > "$$dir/here.txt"; \
	  (cd tools/release && $(GO) run . -root "$$dir/clone" -out "$$dir/there") > "$$dir/there.txt"; \
	  cat "$$dir/here.txt"; diff -r "$$dir/here" "$$dir/there"; diff "$$dir/here.txt" "$$dir/there.txt"

.PHONY: release
release: ## What users install, into dist/, from a tagged commit: make release VERSION=v1.2.3 REGISTRY=<where the images go>
	$(if $(VERSION),,$(error make release needs a version, such as VERSION=v1.2.3))
	$(call release) -version '$(VERSION)' -registry '$(REGISTRY)'

.PHONY: unit
unit: ## Tests that need nothing but Go: seconds, and minutes where they are not built yet
	$(GO) test -vet=off -short -timeout $(TIMEOUT) ./...

# What make test-all adds to make test, and what it lacks where there is no C compiler.
REST    := all tests on real parts and all faults, three versions of Pulsar, KEDA, Prometheus, Helm, a browser, images
HAS_C   := $(shell command -v $${CC:-cc})
RACE    := $(if $(HAS_C),with the race detector where there are goroutines,WITHOUT the race detector: no C compiler)
STARTED := $(shell date +%s)
# Tests that count memory, simulate hours, or go through every order of some writes: with the race detector they take ten
# times as long, and others look for races in the same code.
UNRACED := TakeLittleMemory|HoldsLittle|AreRarelyImplausible|WrongAnswersDecideNothing|NextToAnotherPolicy|AtWhateverWrite

# The packages are not vetted, which means every package they need, with and without the race detector: lint does it.
# Those that start no goroutine need no race detector, with which they take six times as long. What works runs beside
# what waits: no test depends on how fast this machine is.
.PHONY: test
test: ## All packages, with the race detector where there are goroutines, and the core on real parts: needs what demo needs
	@sh test/needs
	@echo 'Compiling what prepares the tests (half a minute the first time) ...'
	@PULSAR=$(PULSAR) $(GO) run ./test/prepare test
	@$(MAKE) --no-print-directory -j2 test-packages test-core
	@s=$$(($$(date +%s) - $(STARTED))); echo "make test: all packages ($(RACE)) and the core on real parts passed in \
	$$((s / 60)) min $$((s % 60)) s. make test-all adds: $(REST)." | tr -s '\t ' ' '

.PHONY: test-packages
test-packages:
	$(GO) test -vet=off -short -timeout $(TIMEOUT) ./api/... ./policy/...
	$(GO) test -vet=off -short -timeout $(TIMEOUT) -run '$(UNRACED)' ./backlog/pulsar ./backlog/poll ./provider/keda ./controllers
	$(if $(HAS_C),CGO_ENABLED=1 $(GO) test -race,$(GO) test) -vet=off -short -timeout $(TIMEOUT) -skip '$(UNRACED)' \
	  ./backlog/... ./provider/... ./controllers/... ./cmd/...
	$(GO) test -vet=off -short -timeout $(TIMEOUT) ./bench/... ./test/...

.PHONY: test-core
test-core:
	PULSAR=$(PULSAR) $(GO) test -vet=off -count=1 -p $(PACKAGES) -parallel $(PARALLEL) -timeout $(TIMEOUT) \
	  ./test/api
	PULSAR=$(PULSAR) $(GO) test -vet=off -count=1 -p $(PACKAGES) -parallel $(PARALLEL) -timeout $(TIMEOUT) \
	  -run '^TestCore' ./test/e2e ./test/faults ./test/ha

.PHONY: test-all
test-all: test test-rest ## make test, then everything else on real parts: KEDA, Prometheus, Helm, browser, all faults, three Pulsars

.PHONY: test-rest
test-rest: prepare ## What make test-all adds to make test
	cd tools/release && $(GO) test -vet=off ./...
	PULSAR=$(PULSAR) $(GO) test -vet=off -count=1 -p $(PACKAGES) -parallel $(PARALLEL) -timeout $(TIMEOUT) \
	  -skip '^TestCore' $$($(GO) list ./cmd/scaler ./test/... ./bench/... | grep -v '/test/api$$')
	PULSAR=$(PULSAR) $(GO) test -vet=off -timeout $(TIMEOUT) -run '^$$' -bench '^BenchmarkMetric$$' -benchtime 64x ./test/e2e
	$(MAKE) --no-print-directory -j2 e2e-signals VERSIONS='4.2.4 5.0.0-M1'

.PHONY: prepare
prepare: ## Fill the cache with what make test-all would fetch or build at its first run, telling what it builds
	@sh test/needs all
	PULSAR=$(PULSAR) $(GO) run ./test/prepare all

.PHONY: e2e
e2e: ## Real-parts tests: make e2e RUN=<regexp> PULSAR=<4.0.8|4.2.4|5.0.0-M1>, such as RUN=Signals PULSAR=4.2.4
	PULSAR=$(PULSAR) $(GO) test -count=1 -parallel $(PARALLEL) -timeout $(TIMEOUT) -v -run '$(RUN)' ./test/e2e

.PHONY: e2e-keda
e2e-keda: ## The same with the real KEDA, its own pulsar scaler first: make e2e-keda RUN=<regexp> PULSAR=<version>
	PULSAR=$(PULSAR) $(GO) test -count=1 -p 1 -timeout $(TIMEOUT) -v -run '$(RUN)' ./test/keda ./test/e2e/keda

.PHONY: e2e-install
e2e-install: ## Helm installs, upgrades and removes the chart on a real control plane: make e2e-install RUN=<regexp> (Linux; test-all has one of them)
	PULSAR=$(PULSAR) $(GO) test -count=1 -p 1 -timeout $(TIMEOUT) -v -run '$(RUN)' ./test/install -all

.PHONY: e2e-signals
e2e-signals: $(VERSIONS:%=e2e-signals-%) ## What is read of a subscription compared with the truth, and recorded answers with real ones, on each Pulsar (-j: at once)

e2e-signals-%:
	@$(MAKE) --no-print-directory e2e RUN='Signals|Fixtures' PULSAR=$*

.PHONY: faults
faults: ## Pulsar's admin service answers wrongly, late, hugely or not at all; make test has the modes that show most
	PULSAR=$(PULSAR) $(GO) test -count=1 -parallel $(PARALLEL) -timeout $(TIMEOUT) -v ./test/faults

.PHONY: fixtures
fixtures: ## Record again what Pulsar answers, for the decoders' tests: make fixtures PULSAR=<4.0.8|4.2.4|5.0.0-M1>
	PULSAR=$(PULSAR) $(GO) test -count=1 -timeout $(TIMEOUT) -run '^TestFixtures' ./test/e2e -record

.PHONY: bench
bench: bench-go bench-metrics bench-policies ## All benchmarks; tables on screen, the same numbers as CSV (bench-policies: JSON) under bench/out

.PHONY: bench-go
bench-go: ## Go benchmarks: decoding an answer, also as KEDA does, reading the store, deciding (COUNT runs, summed up by benchstat)
	@mkdir -p bench/out
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./backlog/... ./policy/... ./provider/... > bench/out/go.txt \
	  || { cat bench/out/go.txt; exit 1; }
	$(call tool,benchstat) bench/out/go.txt
	$(call tool,benchstat) -format csv bench/out/go.txt > bench/out/go.csv

.PHONY: bench-metrics
bench-metrics: ## A metric GET through the real aggregator: p50 and p99 at 1, 16 and 64 clients (COUNT runs, summed up by benchstat)
	@mkdir -p bench/out
	@PULSAR=$(PULSAR) $(GO) run ./test/prepare test
	PULSAR=$(PULSAR) $(GO) test -vet=off -timeout $(TIMEOUT) -run '^$$' -bench '^BenchmarkMetric$$' -benchtime 5000x \
	  -count $(COUNT) ./test/e2e > bench/out/metrics.txt || { cat bench/out/metrics.txt; exit 1; }
	$(call tool,benchstat) bench/out/metrics.txt
	$(call tool,benchstat) -format csv bench/out/metrics.txt > bench/out/metrics.csv

.PHONY: bench-policies
bench-policies: ## 300 policies at once on a real control plane: until all have HorizontalPodAutoscalers, and until messages wake all
	@mkdir -p bench/out
	$(GO) run ./bench/policies -out bench/out/policies.json

.PHONY: bench-scale
bench-scale: ## The adapter's memory, CPU and requests with many policies, 10 minutes for each of POLICIES=<number>,... and no part of bench
	@mkdir -p bench/out
	$(GO) run ./bench/scale -policies '$(POLICIES)' -out bench/out/scale.json

.PHONY: bench-sim
bench-sim: ## Simulated controllers on the named suite and on held-out loads; HTML pages under bench/out/sim (SEED=<number>)
	@mkdir -p bench/out
	$(GO) run ./bench/sim -seed $(SEED) -out bench/out/sim.json -plots bench/out/sim

.PHONY: bench-seeds
bench-seeds: ## Held-out loads of several seeds: ours beside the plain form, by seed and the mean (SEEDS="<number> ...")
	@mkdir -p bench/out/seeds
	@for seed in $(SEEDS); do \
	  $(GO) run ./bench/sim -seed $$seed -scenario '^held-out' -controller '^(simple|capacity)$$' \
	    -out bench/out/seeds/$$seed.json > bench/out/seeds/$$seed.txt || exit 1; done
	@jq -srf docs/seeds.jq $(SEEDS:%=bench/out/seeds/%.json)

.PHONY: bench-traces
bench-traces: ## Simulated controllers on recorded loads: make bench-traces TRACES=<directory of CSV files> CONTROLLER=<regexp> (SEED=<number>)
	$(if $(TRACES),,$(error make bench-traces needs recorded loads, such as TRACES=traces: see docs/comparison.md))
	@mkdir -p bench/out
	$(GO) run ./bench/sim -seed $(SEED) -seeds 1 -traces '$(TRACES)' -controller '$(CONTROLLER)' -out bench/out/traces.json

.PHONY: bench-ablate
bench-ablate: ## What each part of the algorithm is worth, by leaving it out (SEED=<number>)
	@mkdir -p bench/out
	$(GO) run ./bench/sim -seed $(SEED) -ablate all -controller '^capacity$$' -out bench/out/ablate.json

.PHONY: bench-replay
bench-replay: ## Real runs beside simulated ones, 55 minutes and no part of bench (SCENARIOS="<name of examples/bench> ...")
	@mkdir -p bench/out/replay
	@for one in $(SCENARIOS); do \
	  PULSAR=$(PULSAR) $(GO) run ./cmd/kubectl-pap bench run -f examples/bench/$$one.yaml --local -o json \
	    > bench/out/replay/$$one.json || [ -s bench/out/replay/$$one.json ] || exit 1; done
	$(GO) run ./bench/sim -replay '$(SCENARIOS:%=examples/bench/%.yaml)' -results bench/out/replay -out bench/out/replay.json
	@jq -srf docs/replay.jq bench/out/replay.json

.PHONY: bench-keda
bench-keda: ## Beside KEDA's own pulsar scaler on real KEDA, 30 minutes and no part of bench: an outage, and 300 targets
	@mkdir -p bench/out
	PULSAR=$(PULSAR) $(GO) run ./cmd/kubectl-pap bench run -f examples/bench/outage.yaml --local --html bench/out/outage.html
	$(GO) run ./bench/policies -contenders direct,direct_push,ours,ours_push,keda_pulsar -out bench/out/keda.json

.PHONY: bench-queues
bench-queues: ## Beside KEDA's scaler with receive queues of 10 and 1,000, 45 minutes for each of RUNS=<number> and no part of bench
	@mkdir -p bench/out/queues
	@for one in keda wave; do for queue in 10 1000; do for run in $$(seq $(RUNS)); do \
	  variant=bench/out/queues/$$one-$$queue; \
	  sed "s/{name: $$one}/{name: $$one-$$queue}/; s/^function: {/&receiverQueueSize: $$queue, /" \
	    examples/bench/$$one.yaml > $$variant.yaml; \
	  PULSAR=$(PULSAR) $(GO) run ./cmd/kubectl-pap bench run -f $$variant.yaml --local -o json \
	    > $$variant-$$run.json || [ -s $$variant-$$run.json ] || exit 1; done; done; done
	@jq -srf docs/queues.jq bench/out/queues/*.json

.PHONY: generate
generate: ## Regenerate the CRD, deep copies, docs/api.md and docs/metrics.md
	$(call tool,controller-gen) object:headerFile=tools/boilerplate.go.txt paths=./api/... crd output:crd:dir=deploy/crd
	@# kubectl explain wraps texts by itself: folded, each paragraph is one line.
	@for file in deploy/crd/*.yaml; do sed 's/description: |-$$/description: >-/' "$$file" > "$$file.new" && mv "$$file.new" "$$file"; done
	$$(cd tools/apidocs && $(GO) tool -n crd-ref-docs) --log-level error --config tools/apidocs/config.yaml --templates-dir tools/apidocs \
	  --renderer markdown --source-path api --output-path docs/api.md
	@# Both write one page, so one after the other; they are compiled at once first.
	@$(GO) test -vet=off -run '^$$' ./cmd/adapter ./cmd/scaler > /dev/null
	$(GO) test -vet=off -p 1 -run TestThePageHasEverySeries ./cmd/adapter ./cmd/scaler -update

# Not a part of generate, which must not need helm: a test compares the manifests with what is rendered.
.PHONY: manifests
manifests: ## Render the manifests of deploy/ from the chart, and write the chart's README from its values (builds helm, 4 minutes the first time)
	$(GO) test -run TestTheManifestsAreRenderedFromTheChart ./test/deploy -update
	$(GO) test -run TestTheReadmeHasEveryValue ./test/chart -update

# A test compares the headings of the pages with those of the pictures.
drawn = bench/out/pictures
.PHONY: pictures
pictures: ## Draw all pictures of docs again: charts of their pages with the browser of the tests, and docs/architecture.svg (needs npx)
	$(GO) run ./cmd/kubectl-pap simulate -f examples/function.yaml --trace examples/simulate/load.csv --capacity 40-60 \
	  --start-time 20s-40s --cost-per-replica-hour 0.05 --html $(drawn)/simulate.html
	$(GO) run ./bench/sim -seed 7 -held-out 0 -scenario '^step$$' -controller '^(keda-default10|capacity)$$' \
	  -plot '^(oracle|keda-default10|capacity)$$' -plots $(drawn)/step
	$(GO) run ./bench/sim -seed 7 -seeds 1 -patterns 2 -held-out 0 -scenario '^cron-10m-01' -controller '^capacity$$' \
	  -ablate pulses -plot '^(oracle|capacity)' -plots $(drawn)/forecast
	$(GO) run ./bench/demo -from bench/demo/testdata/result.json -out $(drawn)
	$(GO) run ./test/picture/draw $(drawn)/simulate.html docs/page.png
	$(GO) run ./test/picture/draw $(drawn)/demo.html docs/demo.png
	$(GO) run ./test/picture/draw $(drawn)/step/*.html docs/algorithm.png
	$(GO) run ./test/picture/draw $(drawn)/forecast/*.html docs/forecast.png
	npx --yes @hpcc-js/wasm-graphviz-cli@1.11.2 -T svg docs/architecture.dot > docs/architecture.svg

# Not a part of generate, which must not need npm's registry: a test compares checksums of sources and dashboards.
.PHONY: dashboards
dashboards: ## Write the Grafana dashboards of deploy/monitoring from their sources (needs npm)
	cd deploy/monitoring/dashboards && npm ci --ignore-scripts --no-audit --no-fund && npm run generate

# Not a part of generate either: a test compares the checksums of what is copied.
.PHONY: page-library
page-library: ## Copy the chart library of bench/page and its licence out of its npm package (needs npm)
	cd bench/page/uplot && npm ci --ignore-scripts --no-audit --no-fund && \
	  cp node_modules/uplot/LICENSE node_modules/uplot/dist/uPlot.iife.min.js node_modules/uplot/dist/uPlot.min.css . && \
	  sha256sum LICENSE uPlot.iife.min.js uPlot.min.css > SHA256SUMS && rm -rf node_modules

.PHONY: verify
verify: generate ## Fail when generated files or modules are not up to date
	git diff --exit-code -- api deploy/crd docs/api.md docs/metrics.md
	$(GO) mod tidy -diff
	cd tools/release && $(GO) mod tidy -diff
	cd tools/helm && $(GO) mod tidy -diff
	cd tools/apidocs && $(GO) mod tidy -diff
	cd tools/bundle && $(GO) mod tidy -diff
	cd tools/krew && $(GO) mod tidy -diff

.PHONY: lint
lint: ## Static checks
	$(call tool,golangci-lint) run --allow-parallel-runners ./...
	cd tools/release && $$(cd .. && $(GO) tool -n golangci-lint) run --allow-parallel-runners ./...

.PHONY: fmt
fmt: ## Format
	$(call tool,golangci-lint) fmt ./...

.PHONY: clean
clean: ## Remove what was built into the tree (not the cache outside of it)
	rm -rf bin dist bench/out
