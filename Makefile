# Commands of pulsar-autoscaler. Tools come from the pinned module in tools/, real servers from test/cluster and
# test/broker; both are built or fetched once and cached outside the tree.

GO      ?= go
RUN     ?= .
PULSAR  ?= 4.0.8
KEEP    ?=
COUNT   ?= 6
SEED    ?= 1
SEEDS   ?= 1 2 3
TIMEOUT ?= 30m
# Tests of a package on real parts at once: they wait more than they work, so it is more than there are processors.
# Those of test/e2e wait most: four at once take 40 % of two cores.
PARALLEL     ?= 4
E2E_PARALLEL ?= 6
# Packages at once.
PACKAGES     ?= 2
SCENARIO     ?=
SECONDS_EACH ?= 0
VERSION      ?=
REGISTRY     ?=
PARTS        ?= outage,burst

# tool NAME is the path of a pinned tool, built on first use.
tool = $$(cd tools && $(GO) tool -n $(1))

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## The main job on this machine: real Pulsar, real Kubernetes control plane, real HPA (KEEP=1 leaves it running)
	@echo 'Building the demo; the first time fetches Go modules ...'
	@mkdir -p bin
	@$(GO) build -o bin/demo ./bench/demo 2>bin/demo.log || { cat bin/demo.log; exit 1; }
	@PULSAR=$(PULSAR) bin/demo $(if $(KEEP),-keep)

.PHONY: build
build: ## Build the binaries into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

# release is the program of tools/release: the same commit gives the same bytes on any machine.
release = cd tools/release && $(GO) run . -root $(CURDIR) -out $(CURDIR)/dist

.PHONY: image
image: ## OCI images of the programs for linux/amd64 and linux/arm64 into dist/images, without a container engine
	$(call release)

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
	$(GO) test -short -timeout $(TIMEOUT) ./...
	cd tools/release && $(GO) test -short ./...

.PHONY: prepare
prepare: ## Fill the cache with what tests on real parts would fetch or build at their first run, in minutes, telling how far it is
	PULSAR=$(PULSAR) $(GO) run ./test/prepare

# The packages are not vetted, which means every package they need, with and without the race detector: lint does it.
# Those that start no goroutine need no race detector, with which they take six times as long. Tests of the whole loop
# measure how replicas follow a load, which a busy machine holds up: they come last, by themselves, and wait more than
# they work. Of test/install, TestInstallScaleUninstall runs; e2e-install has the rest. What fills both cores on purpose
# runs before test/e2e.
.PHONY: test
test: ## All tests: the packages, where there are goroutines with the race detector, then those on real parts
	$(GO) test -vet=off -short -timeout $(TIMEOUT) ./api/... ./policy/...
	$(GO) test -vet=off -race -short -timeout $(TIMEOUT) ./backlog/... ./provider/... ./controllers/... ./cmd/...
	cd tools/release && $(GO) test -vet=off ./...
	PULSAR=$(PULSAR) $(GO) test -vet=off -count=1 -p $(PACKAGES) -parallel $(PARALLEL) -timeout $(TIMEOUT) \
	  $$($(GO) list ./test/... ./bench/... | grep -v /test/e2e)
	PULSAR=$(PULSAR) $(GO) test -vet=off -count=1 -p $(PACKAGES) -parallel $(E2E_PARALLEL) -timeout $(TIMEOUT) ./test/e2e/...

.PHONY: e2e
e2e: ## Real-parts tests: make e2e RUN=<regexp> PULSAR=<4.0.8|4.2.4|5.0.0-M1>, such as RUN=Signals PULSAR=4.2.4
	PULSAR=$(PULSAR) $(GO) test -count=1 -parallel $(E2E_PARALLEL) -timeout $(TIMEOUT) -v -run '$(RUN)' ./test/e2e

.PHONY: e2e-keda
e2e-keda: ## The same with the real KEDA, its own pulsar scaler first: make e2e-keda RUN=<regexp> PULSAR=<version>
	PULSAR=$(PULSAR) $(GO) test -count=1 -p 1 -timeout $(TIMEOUT) -v -run '$(RUN)' ./test/keda ./test/e2e/keda

.PHONY: e2e-install
e2e-install: ## Helm installs, upgrades and removes the chart on a real control plane: make e2e-install RUN=<regexp> (Linux; test has one of them)
	PULSAR=$(PULSAR) $(GO) test -count=1 -p 1 -timeout $(TIMEOUT) -v -run '$(RUN)' ./test/install -all

.PHONY: e2e-signals
e2e-signals: ## What is read of a subscription compared with the truth, on each version of Pulsar in turn
	for version in 4.0.8 4.2.4 5.0.0-M1; do \
	  $(MAKE) --no-print-directory e2e RUN=Signals PULSAR=$$version || exit 1; done

.PHONY: faults
faults: ## Pulsar's admin service answers wrongly, late, hugely or not at all: all modes, of which make test has those that show most
	PULSAR=$(PULSAR) $(GO) test -count=1 -parallel $(PARALLEL) -timeout $(TIMEOUT) -v ./test/faults -all

.PHONY: fixtures
fixtures: ## Record again what Pulsar answers, for the decoders' tests: make fixtures PULSAR=<4.0.8|4.2.4|5.0.0-M1>
	PULSAR=$(PULSAR) $(GO) test -count=1 -timeout $(TIMEOUT) -run '^TestFixtures' ./test/e2e -record

.PHONY: bench
bench: bench-go bench-metrics bench-poll bench-policies ## All benchmarks; tables on screen, the same numbers as JSON under bench/out

.PHONY: bench-go
bench-go: ## Go benchmarks: decoding an answer, reading the store, deciding (COUNT runs, summed up by benchstat)
	@mkdir -p bench/out
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./backlog/... ./policy/... ./provider/... | tee bench/out/go.txt
	$(GO) run ./bench/gojson < bench/out/go.txt > bench/out/go.json
	$(call tool,benchstat) bench/out/go.txt

.PHONY: bench-metrics
bench-metrics: ## A metric GET through the real aggregator: p50 and p99 at 1, 16 and 64 clients
	@mkdir -p bench/out
	$(GO) run ./bench/metrics -out bench/out/metrics.json

.PHONY: bench-poll
bench-poll: ## Polling 1k, 10k and 100k topic-partitions: ours beside a request for each trigger
	@mkdir -p bench/out
	$(GO) run ./bench/poll -out bench/out/poll.json

.PHONY: bench-policies
bench-policies: ## 300 policies at once on a real control plane: until all have HorizontalPodAutoscalers, and statuses written a second
	@mkdir -p bench/out
	$(GO) run ./bench/policies -out bench/out/policies.json

.PHONY: bench-sim
bench-sim: ## Simulated controllers on the named suite and on held-out loads; plots under bench/out/sim (SEED=<number>)
	@mkdir -p bench/out
	$(GO) run ./bench/sim -seed $(SEED) -out bench/out/sim.json -plots bench/out/sim

.PHONY: bench-seeds
bench-seeds: ## Held-out loads of several seeds: ours beside the plain form, by seed and the mean (SEEDS="<number> ...")
	@mkdir -p bench/out/seeds
	@for seed in $(SEEDS); do \
	  $(GO) run ./bench/sim -seed $$seed -scenario '^held-out' -controller '^(simple|capacity)$$' \
	    -out bench/out/seeds/$$seed.json > bench/out/seeds/$$seed.txt || exit 1; done
	@jq -srf docs/seeds.jq $(SEEDS:%=bench/out/seeds/%.json)

.PHONY: bench-ablate
bench-ablate: ## What each part of the algorithm is worth, by leaving it out (SEED=<number>)
	@mkdir -p bench/out
	$(GO) run ./bench/sim -seed $(SEED) -ablate all -controller '^capacity$$' -out bench/out/ablate.json

.PHONY: bench-replay
bench-replay: ## Real runs beside simulated ones, 30 minutes and no part of bench: make bench-replay SCENARIO=<regexp> SECONDS_EACH=<number>
	@mkdir -p bench/out
	PULSAR=$(PULSAR) $(GO) run ./bench/replay -scenario '$(SCENARIO)' -seconds $(SECONDS_EACH) -out bench/out/replay.json -plots bench/out

.PHONY: bench-keda
bench-keda: ## Beside KEDA's own pulsar scaler on real KEDA, 25 minutes and no part of bench: a scenario, and PARTS=<outage,burst>
	@mkdir -p bench/out
	PULSAR=$(PULSAR) $(GO) run ./cmd/kubectl-pap bench run -f examples/bench/keda.yaml --local --html bench/out/keda.html
	PULSAR=$(PULSAR) $(GO) run ./bench/keda -parts '$(PARTS)' -out bench/out/keda.json

.PHONY: generate
generate: ## Regenerate the CRD, deep copies, docs/api.md and docs/metrics.md
	$(call tool,controller-gen) object:headerFile=tools/boilerplate.go.txt paths=./api/... crd output:crd:dir=deploy/crd
	$$(cd tools/apidocs && $(GO) tool -n crd-ref-docs) --log-level error --config tools/apidocs/config.yaml --templates-dir tools/apidocs \
	  --renderer markdown --source-path api --output-path docs/api.md
	$(GO) test -p 1 -run TestThePageHasEverySeries ./cmd/adapter ./cmd/scaler -update

# Not a part of generate, which must not need helm: a test compares the manifests with what is rendered.
.PHONY: manifests
manifests: ## Render the manifests of deploy/ from the chart, and write the chart's README from its values (builds helm, 4 minutes the first time)
	$(GO) test -run TestTheManifestsAreRenderedFromTheChart ./test/deploy -update
	$(GO) test -run TestTheReadmeHasEveryValue ./test/chart -update

.PHONY: pictures
pictures: ## Draw docs/architecture.svg of its source (needs npx)
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

.PHONY: lint
lint: ## Static checks
	$(call tool,golangci-lint) run --timeout 20m ./...
	cd tools/release && $$(cd .. && $(GO) tool -n golangci-lint) run --timeout 20m ./...

.PHONY: fmt
fmt: ## Format
	$(call tool,golangci-lint) fmt ./...

.PHONY: clean
clean: ## Remove what was built into the tree (not the cache outside of it)
	rm -rf bin dist bench/out
