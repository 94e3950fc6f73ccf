# Every target prepares what it needs on a fresh machine. `make` lists them.

SHELL := /bin/bash
# Where rustup puts cargo, and where a plain user's path lacks mkfs and losetup.
export PATH := $(HOME)/.cargo/bin:$(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help
.PHONY: help setup demo test bench aa faults experiments build package book fmt lint tidy deny fuzz web setup-demo setup-test setup-bench setup-web
# The parts of a target are targets: with --keep-going, one that fails does not hide what the others say.
.PHONY: format-check clippy house-rules figures web-modules page-asset page-tests

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: setup-test ## Install what the other targets need (Debian 12), or say what is missing

demo: setup-demo ## Compare the embedded engines in about three minutes and write the page
	@echo "demo: building rumba, then running experiments/quickstart.toml"
	cargo build --release -p rumba
	@scripts/demo

test: setup-test ## Run every check and every test, as CI does; says what each step took
	@scripts/steps lint compile rules-and-page fuzz-compile tests

bench: setup-bench ## Measure what rumba itself costs per operation
	@echo "bench: measuring rumba's own cost"
	@scripts/bench

aa: setup-demo ## Compare engines with themselves: how often verdicts err (an hour; ENGINE=innodb MODE=loads PAIRS=2)
	@echo "aa: counts go to docs/aa.json, the table to docs/method.md"
	cargo build --release -p rumba -p xtask
	$(TARGET)/release/xtask aa --write $(foreach name,ENGINE MODE PAIRS,$(if $($(name)),$(name)=$($(name))))

# Cases and inputs of another seed are others: SEED=2. One case again: ARGS="--case 31".
SEED := 1
faults: setup-test ## Harm real runs in a hundred ways and ask what came of it (half an hour; SEED=2, ARGS="--case 31")
	@echo "faults: the cases of seed $(SEED); counts go to docs/reliability.md"
	cargo build --release -p rumba -p rumba-faults
	$(TARGET)/release/faults --rumba $(TARGET)/release/rumba --base $(TARGET)/faults --seed $(SEED) --write . $(ARGS)

experiments: setup-test setup-web ## Run the published experiments (four hours), or NAME=storage-tiers ARGS="--set repeats=8"
	@echo "experiments: tables and pictures go to docs/experiments"
	cargo build --release -p rumba
	@scripts/experiments $(NAME) $(ARGS)

build: setup-demo ## Build the release binary
	@echo "build: target/release/rumba"
	cargo build --release -p rumba

# What is packed: of a release build, unless another binary is named.
BINARY = $(TARGET)/release/rumba
package: setup-demo ## Make a Debian package, a tarball and a wheel in target/package (BINARY=… packs that one)
	@command -v cargo-deb >/dev/null || { echo "package: installing cargo-deb, about 120 CPU seconds"; \
	cargo install --quiet --locked --debug --config profile.dev.debug=false --root $(TOOLS) cargo-deb; }
	$(if $(filter file,$(origin BINARY)),cargo build --release -p rumba)
	cargo run -q -p xtask -- package $(BINARY)

.PHONY: package-test
package-test: ## Install the packages in an empty Debian, answer a question with them, remove them (needs root)
	@echo "package-test: in a root of its own, a quarter of an hour; docs/package.txt has what it took"
	@scripts/package-test $(ARGS)

book: ## Build the book in target/book, and follow its links; installs mdBook if needed
	@command -v mdbook >/dev/null || { echo "book: installing mdBook, about 180 CPU seconds"; \
	cargo install --quiet --locked --debug --config profile.dev.debug=false --root $(TOOLS) mdbook; }
	cargo run -q -p xtask -- book

.PHONY: book-test
book-test: setup-test ## Run every command of the README and the how-to pages, also those that take long (half an hour)
	@echo "book-test: each page's commands in a directory of its own"
	cargo test -q -p rumba --test documents -- --ignored

fmt: ## Format the sources
	cargo fmt --all

lint: format-check clippy ## Check formatting and clippy's advice

format-check:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets -- -D warnings

tidy: house-rules figures ## Check dependencies between crates, lengths, links, and the pages' figures against the committed ones

house-rules:
	$(call program,xtask,-p xtask) tidy

figures:
	$(call program,xtask,-p xtask) experiments

# Cargo compiles a dependency once for each set of its features, and each choice
# of packages has its own: what runs after `compile` takes its programs.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
program = $(if $(COMPILED),$(TARGET)/debug/$(1),cargo run -q $(2) --)

.PHONY: compile tests
compile:
	@echo "compile: every target of every crate at once"
	cargo build --workspace --all-targets

# Within `make test` the tests of the page have run before: what they told is in its closing line. Fuzzing runs beside tests
# that mostly sleep and leave it half of the processors: for twice as long as by itself.
tests:
	@echo "tests: running the tests of every crate"
	@$(if $(COMPILED),PAGE_TOLD=$(PAGE_TOLD) BESIDE="scripts/fuzz $$((2 * $(FUZZ_SECONDS))) $(filter-out drawn,$(SEED))") scripts/test

# Built without optimisation, which halves the cost of installing it and is soon
# enough for one graph; beside the build, so that nobody's own is replaced.
TOOLS := $(or $(CARGO_TARGET_DIR),target)/tools
export PATH := $(abspath $(TOOLS))/bin:$(PATH)

deny: ## Check licences and sources of all crates; installs cargo-deny if needed
	@command -v cargo-deny >/dev/null || { echo "deny: installing cargo-deny, about 90 CPU seconds"; \
	cargo install --quiet --locked --debug --config profile.dev.debug=false --root $(TOOLS) cargo-deny; }
	@echo "deny: licences, bans and sources of all crates"
	@cargo deny --log-level error check licenses bans sources

FUZZ_SECONDS := 20
# A change is judged by the same inputs each time; SEED=drawn tries others.
fuzz: fuzz-compile ## Fuzz the protocols' clients (FUZZ_SECONDS=600 SEED=drawn); installs cargo-fuzz if needed
	@scripts/fuzz $(FUZZ_SECONDS) $(filter-out drawn,$(SEED))

.PHONY: fuzz-compile
fuzz-compile:
	@command -v cargo-fuzz >/dev/null || { echo "fuzz: installing cargo-fuzz, about 60 CPU seconds"; \
	cargo install --quiet --locked --debug --config profile.dev.debug=false --root $(TOOLS) cargo-fuzz || true; }
	@scripts/fuzz --compile

PAGE := $(TARGET)/page/sample.html
# What the page's tests told, for the closing line of `make test`.
PAGE_TOLD := $(TARGET)/page/told

web: page-asset page-tests ## Build the page from web/, compare it with the one in the binary, test it in a browser

web-modules: setup-web
	npm --prefix web ci

page-asset: web-modules
	npm --prefix web run asset:check

page-tests: web-modules
	@echo "web: driving a page of made-up figures in chromium"
	@mkdir -p $(dir $(PAGE))
	$(call program,examples/sample,-p rumba-report --example sample) $(PAGE) >/dev/null
	$(call program,examples/sample,-p rumba-report --example sample) $(dir $(PAGE))ladder.html ladder >/dev/null
	$(call program,examples/sample,-p rumba-report --example sample) $(dir $(PAGE))suite.html suite >/dev/null
	$(call program,examples/sample,-p rumba-report --example sample) $(dir $(PAGE))proof.html proof >/dev/null
	$(call program,examples/sample,-p rumba-report --example sample) $(dir $(PAGE))hour.html hour
	$(if $(COMPILED),,cargo build -q -p rumba)
	RUMBA_PAGE=$(PAGE) RUMBA_BIN=$(TARGET)/debug/rumba RUMBA_PAGE_TOLD=$(PAGE_TOLD) npm --prefix web test

# The rules take one processor each for some seconds, the page's tests wait now and then.
.PHONY: rules-and-page
rules-and-page:
	@$(MAKE) --no-print-directory --keep-going --jobs --output-sync=target tidy deny web-if-there

# Where a browser or Node.js is missing, each test of the page is skipped by name, as those of crates are.
.PHONY: web-if-there
web-if-there:
	@mkdir -p $(dir $(PAGE_TOLD)) && rm -f $(PAGE_TOLD)
	@if scripts/setup web-there; then $(MAKE) --no-print-directory web; \
	else sed -n 's/^test("\(.*\)", .*/skipped: page: \1 needs Browser: make web says how to get it/p' \
	web/test/*.test.mjs > $(PAGE_TOLD); echo "web: skipped (make web says how to get it)"; fi

setup-demo setup-test setup-bench setup-web: setup-%:
	@scripts/setup $*
