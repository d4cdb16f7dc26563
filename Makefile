# The doors of the house, the same for people and for CI.
#
#   make run    build and start `weir demo`: needs a Rust toolchain and nothing else
#   make test   install what the tests need from Debian's packages, then run them (15 minutes at most)
#   make check  format, lints, and the arrows between the rooms
#   make prove  the long and the timed ones: failures under load, fuzzing, CPU against HAProxy and tshark
#   make measure what reloads and an upgrade cost others in latency: needs a quiet machine (six minutes)
#   make race   side by side with HAProxy, nginx and Envoy: CPU, latency, memory (half an hour)
#   make lab    eight incidents, made again and solved (20 minutes at most; root)
#   make soak   five minutes of full load with reloads and kills: memory and descriptors stay flat
#
# Everything works offline but Debian's packages and crates.io.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
# Seconds for each fuzz target in `make prove`.
FUZZ_SECONDS ?= 60
# The versions that this repository's deny.toml was written for.
CARGO_DENY_VERSION := 0.20.2
TOOLS := $(CURDIR)/target/tools

.PHONY: help run test check prove measure race lab soak deny peers

help:
	@sed -n 's/^#   //p' Makefile

# The dev profile is optimised enough to carry real traffic and builds in a fraction of the time
# that the release profile's link-time optimisation takes.
run:
	@$(CARGO) build --quiet --package weir
	exec target/debug/weir demo

peers:
	@scripts/install-test-peers

# `cargo build --workspace` first, so that the tests of the whole program find one fresh binary,
# built with the same features as everything that is tested.
test: peers
	@$(CARGO) build --workspace
	WEIR_BIN=$(CURDIR)/target/debug/weir $(CARGO) test --workspace --no-fail-fast

check:
	@$(CARGO) fmt --all --check
	$(CARGO) run --quiet --package xtask -- arrows
	$(CARGO) clippy --quiet --workspace --all-targets -- --deny warnings

# Licences and origins of what is built in. Stands in `prove`, not in `check`: building cargo-deny
# takes minutes the first time; afterwards it is kept below target/.
deny:
	@if ! "$(TOOLS)/bin/cargo-deny" --version 2>/dev/null | grep -q "$(CARGO_DENY_VERSION)"; then
	  $(CARGO) install --quiet --locked --root "$(TOOLS)" --version $(CARGO_DENY_VERSION) cargo-deny
	fi
	"$(TOOLS)/bin/cargo-deny" --all-features check --hide-inclusion-graph licenses bans sources

prove: peers deny
	@$(CARGO) build --release --package weir
	WEIR_BIN=$(CURDIR)/target/release/weir $(CARGO) test --workspace --no-fail-fast --test 'prove_*' -- --ignored --nocapture --test-threads=1
	fuzz/run $(FUZZ_SECONDS)
	scripts/bench-trace
	race/run small-32 --only weir,haproxy --rounds 21 --latency-rounds 0 --at-most 0.95

# What is judged by time and varies with what else the machine does; not part of CI.
measure: peers
	@$(CARGO) build --release --package weir
	MEASURE=1 WEIR_BIN=$(CURDIR)/target/release/weir $(CARGO) test --package weir-e2e --test prove_reload -- --ignored --nocapture --test-threads=1

# RACE="small-32 50k" races these alone; race/run --help says more.
race:
	@race/install
	$(CARGO) build --release --package weir
	race/run --json target/race.json --svg docs/race.svg $(RACE)

# LAB="small-link --seed 7" runs this alone; the page is target/lab.html.
lab: peers
	@$(CARGO) build --release --package weir
	target/release/weir lab run --report target/lab.html $(LAB)

soak: peers
	@$(CARGO) build --release --package weir
	WEIR_BIN=$(CURDIR)/target/release/weir $(CARGO) test --package weir-e2e --test soak -- --ignored --nocapture
