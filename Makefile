# The commands of this project, the same for people and for CI.
#
#   make run    build and start `weir demo`: needs a Rust toolchain and a C compiler
#   make test   install what the tests need from Debian's packages, then run them (15 minutes at most)
#   make check  format, lints, the dependencies between crates, links between the documents
#   make prove  long runs and failures under load, fuzzing, licences; judged by counts alone
#               (15 minutes; PROVE=long runs the full lengths). Some tests need Go or Java, one of them Node and
#               npm's registry; they are left out without
#   make measure everything judged by time or CPU, against HAProxy, wrk and tshark: needs a quiet
#               machine (half an hour); ends with a table of targets and results; not part of CI
#   make race   compare with HAProxy, nginx and Envoy: CPU, latency, memory (half an hour)
#   make docs   make a site of the documentation, with a search: target/book (builds mdBook first, in minutes)
#   make lab    reproduce and solve ten incidents (35 minutes at most; root; one needs Go)
#   make interop real HTTP/2 and gRPC clients and servers on both sides of Weir (20 minutes at most; needs
#               Go, Node and Java, PyPI and the Go module proxy); not part of CI
#   make kubernetes check the Helm chart, policies, an autoscaler that reads from Weir, and an outage of the API
#               server, and run the conformance suite of the Gateway API against Weir, in test clusters
#               with Kubernetes' own API server, and write the suite's reports (interop/kubernetes/reports; 22 minutes,
#               and as long again for the first build; root; needs Go and the Go module proxy); not part of CI
#   make kubernetes-scale measure in that cluster how fast changes of routes take effect (10 minutes with 5000 routes);
#               needs a quiet machine; not part of CI
#   make browser check the dashboard, and use it in Chromium before a real balancer (5 minutes; needs Node and npm's
#               registry); not part of CI, except for one case in `make prove`
#   make release build a release into dist/ (static program, Debian package, image, SBOM, checksums) and try each file in
#               an empty root, a new Debian or by buildah (root; one release build and 5 minutes); not part of CI.
#               `packaging/reproduce` checks that two builds give the same bytes
#   make soak   five minutes of full load with reloads and kills: memory and descriptors stay flat
#
# Only Debian's packages and crates.io need a network, unless a line above names more.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
# Seconds for each fuzz target in `make prove`; three times as long with PROVE=long.
FUZZ_SECONDS ?= $(if $(filter long,$(PROVE)),60,20)

.PHONY: help docs run test check prove measure race lab interop kubernetes kubernetes-scale browser soak deny peers pebble oauth2-proxy otel-collector consul nomad keda-client prove-peers release

help:
	@sed -n 's/^#   //p' Makefile

# The dev profile is optimised enough to carry real traffic and builds in a fraction of the time
# that the release profile's link-time optimisation takes.
run:
	@$(CARGO) build --quiet --package weir
	exec target/debug/weir demo

peers:
	@scripts/install-test-peers

# Also what only `make prove` needs.
prove-peers:
	@scripts/install-test-peers prove

pebble:
	@scripts/install-pebble

oauth2-proxy:
	@scripts/install-oauth2-proxy

otel-collector:
	@scripts/install-otel-collector

consul:
	@scripts/install-consul

nomad:
	@scripts/install-nomad

keda-client:
	@scripts/install-keda-client

# How many tests run at the same time. Most of them wait for a server, a probe or a deadline: with as
# many as there are processors, those are nine tenths idle.
TEST_THREADS ?= $(shell echo $$((3 * $$(nproc))))

# nextest runs the tests, each in a process of its own, as .config/nextest.toml says. The whole
# workspace is built first and by one command, so that the tests of the whole program find one fresh
# binary, built with the same features as everything that is tested. nextest runs no doctests.
test: peers
	@nextest=$$(scripts/tool cargo-nextest)
	$(CARGO) build --workspace --all-targets
	WEIR_BIN=$(CURDIR)/target/debug/weir "$$nextest" nextest run --workspace --test-threads $(TEST_THREADS)
	$(CARGO) test --quiet --workspace --doc
	scripts/loom

# The documentation as a site with a search: target/book/index.html.
docs:
	@mdbook=$$(scripts/tool mdbook)
	"$$mdbook" build

check:
	@$(CARGO) fmt --all --check
	$(CARGO) run --quiet --package xtask -- arrows
	$(CARGO) clippy --quiet --workspace --all-targets --features weir/kubernetes -- --deny warnings

# Licences and origins of what is built in. It is part of `prove`, not of `check`, which needs nothing
# but the Rust toolchain.
deny:
	@"$$(scripts/tool cargo-deny)" --all-features check --hide-inclusion-graph licenses bans sources

# Counts do not depend on the last tenth of speed: thin link-time optimisation will do. With PROVE_PROFILE=dev it is
# the binary that `make test` builds (the same features, or it would be built again): CI saves ten minutes.
PROVE_PROFILE ?= prove
PROVE_BUILD = $(if $(filter dev,$(PROVE_PROFILE)),--workspace --all-targets,--package weir)
PROVE_BIN = $(CURDIR)/target/$(PROVE_PROFILE:dev=debug)/weir

prove: prove-peers deny pebble oauth2-proxy otel-collector consul nomad keda-client
	@nextest=$$(scripts/tool cargo-nextest)
	$(CARGO) build --profile $(PROVE_PROFILE) $(PROVE_BUILD)
	WEIR_BIN=$(PROVE_BIN) "$$nextest" nextest run --profile long --workspace --test-threads $(TEST_THREADS) --run-ignored only \
	  -E 'binary(/^prove_/)'
	WEIR_BIN=$(PROVE_BIN) scripts/dashboard quick
	fuzz/run $(FUZZ_SECONDS)

# What is judged by time and varies with what else the machine does; not part of CI. All of it runs,
# whatever fails; scripts/promises.py makes a table of what was promised and measured.
measure: peers
	@nextest=$$(scripts/tool cargo-nextest)
	$(CARGO) build --release --package weir
	failed=()
	export WEIR_PROMISES=$(CURDIR)/target/measure.lines
	rm -f "$$WEIR_PROMISES"
	WEIR_BIN=$(CURDIR)/target/release/weir "$$nextest" nextest run --profile long --package weir-e2e --run-ignored only -E 'binary(/^measure_/)' || failed+=(tests)
	scripts/bench-trace || failed+=(bench-trace)
	scripts/bench-log-cost || failed+=(bench-log-cost)
	race/run small-32 --only weir,haproxy --rounds 21 --latency-rounds 0 --at-most 0.95 --json target/race-measure.json || failed+=(race)
	scripts/promises.py --race target/race-measure.json --json target/measure.json || failed+=(promises)
	[ $${#failed[@]} -eq 0 ] || { echo "make measure: failed: $${failed[*]}" >&2; exit 1; }

# RACE="small-32 50k" races these alone; race/run --help says more.
race:
	@race/install
	$(CARGO) build --release --package weir
	race/run --json target/race.json --svg docs/race.svg $(RACE)

# LAB="small-link --seed 7" runs this alone; the page is target/lab.html.
lab: peers consul
	@$(CARGO) build --release --package weir
	target/release/weir lab run --report target/lab.html $(LAB)

# INTEROP="--clients java-tls --cases early" runs these alone; interop/run --help says more.
interop:
	@$(CARGO) build --quiet --package weir
	interop/run --json target/interop.json $(INTEROP)

# KUBERNETES="--run HTTPRouteCORS" runs this alone, KUBERNETES="--channel experimental" uses the experimental CRDs alone, and
# neither writes a report that is checked in; scripts/kubernetes-conformance --help says more.
kubernetes:
	@$(CARGO) build --quiet --workspace --features weir/kubernetes
	program=$(CURDIR)/target/weir-kubernetes
	cp target/debug/weir "$$program"
	scripts/kubernetes-helm --weir "$$program"
	scripts/kubernetes-autoscale --weir "$$program"
	scripts/kubernetes-policies --weir "$$program"
	scripts/kubernetes-outage --weir "$$program" --json target/kubernetes-outage.json
	suite() {
	  scripts/kubernetes-conformance --image weir="$$program" --manifests packaging/kubernetes \
	    --profiles GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS,GATEWAY-TCP "$$@"
	}
	$(if $(strip $(KUBERNETES)),suite $(KUBERNETES),\
	for channel in standard experimental; do \
	  suite --channel $$channel --report interop/kubernetes/reports/$$channel.yaml; \
	done)

# KUBERNETES_SCALE="--routes 1000 --pods 1" measures this; scripts/kubernetes-scale --help says more.
kubernetes-scale:
	@$(CARGO) build --release --package weir --features weir/kubernetes
	scripts/kubernetes-scale --image weir=$(CURDIR)/target/release/weir --json target/kubernetes-scale.json \
	  --routes 5000 --pod-changes 6 $(KUBERNETES_SCALE)

# RELEASE="build" or RELEASE="try" does one of both; packaging/release --help says more.
release:
	@packaging/release $(RELEASE)

browser: peers
	@$(CARGO) build --quiet --package weir
	WEIR_BIN=$(CURDIR)/target/debug/weir scripts/dashboard

soak: peers
	@$(CARGO) build --release --package weir
	WEIR_BIN=$(CURDIR)/target/release/weir $(CARGO) test --package weir-e2e --test soak -- --ignored --nocapture
