# Each target installs its own needs on a fresh machine. `make` lists the targets.

SHELL := /bin/bash
# rustup puts cargo in ~/.cargo/bin. Debian leaves mkfs and losetup out of an unprivileged user's path.
export PATH := $(HOME)/.cargo/bin:$(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help
.PHONY: help setup demo test bench aa faults experiments build package book fmt lint tidy deny fuzz web setup-demo setup-test setup-bench setup-web
# The parts of a target are targets too. With --keep-going, make then runs the other parts after one has failed.
.PHONY: format-check clippy house-rules figures web-modules page-asset page-tests

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: setup-test ## Install the needs of the other targets (Debian 12), or name the missing packages

demo: setup-demo ## Compare the embedded engines in about three minutes and write a page
	@echo "demo: building rumba, then running experiments/quickstart.toml"
	cargo build --release -p rumba
	@scripts/demo

test: setup-test ## Run every check and every test, as CI does, and report the time of each step
	@scripts/steps lint compile rules-and-page fuzz-compile tests

bench: setup-bench ## Measure rumba's own cost per operation
	@echo "bench: measuring rumba's own cost"
	@scripts/bench

aa: setup-demo ## Compare engines with themselves to count wrong verdicts (an hour; ENGINE=innodb MODE=loads PAIRS=2)
	@echo "aa: writing counts to docs/aa.json and the table to docs/error-rates.md"
	cargo build --release -p rumba -p xtask
	$(TARGET)/release/xtask aa --write $(foreach name,ENGINE MODE PAIRS,$(if $($(name)),$(name)=$($(name))))

# SEED=2 runs other cases with other inputs. ARGS="--case 31" repeats one case.
SEED := 1
faults: setup-test ## Inject a hundred faults into real runs and check the outcomes (half an hour; SEED=2, ARGS="--case 31")
	@echo "faults: running the cases of seed $(SEED) and writing counts to docs/reliability.md"
	cargo build --release -p rumba -p rumba-faults
	$(TARGET)/release/faults --rumba $(TARGET)/release/rumba --base $(TARGET)/faults --seed $(SEED) --write . $(ARGS)

experiments: setup-test setup-web ## Run the published experiments (more than 13 hours), or NAME=storage-tiers ARGS="--set repeats=8"
	@echo "experiments: writing tables and pictures to docs/experiments"
	cargo build --release -p rumba
	@scripts/experiments $(NAME) $(ARGS)

build: setup-demo ## Build the release binary
	@echo "build: building target/release/rumba"
	cargo build --release -p rumba

# The packages contain this binary. By default, it is a release build.
BINARY = $(TARGET)/release/rumba
package: setup-demo ## Make a Debian package, a tarball and a wheel in target/package (BINARY=… packs another binary)
	@command -v cargo-deb >/dev/null || { echo "package: installing cargo-deb, about 120 CPU seconds"; \
	cargo install --quiet --locked --debug --config profile.dev.debug=false --root $(TOOLS) cargo-deb; }
	$(if $(filter file,$(origin BINARY)),cargo build --release -p rumba)
	cargo run -q -p xtask -- package $(BINARY)

.PHONY: package-test
package-test: ## Install the packages in an empty Debian, run an experiment with them, remove them (needs root)
	@echo "package-test: runs in a separate root file system for about 15 minutes; docs/package.txt has the times"
	@scripts/package-test $(ARGS)

book: ## Build the book in target/book and check its links; installs mdBook if needed
	@command -v mdbook >/dev/null || { echo "book: installing mdBook, about 180 CPU seconds"; \
	cargo install --quiet --locked --debug --config profile.dev.debug=false --root $(TOOLS) mdbook; }
	cargo run -q -p xtask -- book

.PHONY: book-test
book-test: setup-test ## Run every command of the README and the how-to pages, with the slow ones (half an hour)
	@echo "book-test: running the commands of each page in a separate directory"
	cargo test -q -p rumba --test documents -- --ignored

fmt: ## Format the sources
	cargo fmt --all

lint: format-check clippy ## Check formatting, and run clippy

format-check:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets -- -D warnings

tidy: house-rules figures ## Check crate dependencies, lengths and links, and compare the pages' figures with the committed results

house-rules:
	$(call program,xtask,-p xtask) tidy

figures:
	$(call program,xtask,-p xtask) experiments

# Cargo compiles a dependency once for each set of its features, and each selection of packages has its own sets.
# To avoid a second build, steps after `compile` run the programs that it built.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
program = $(if $(COMPILED),$(TARGET)/debug/$(1),cargo run -q $(2) --)

.PHONY: compile tests
compile:
	@echo "compile: building every target of every crate"
	cargo build --workspace --all-targets

# In `make test`, the page's tests have run before, and the totals include their results. Fuzzing runs in the background,
# during tests that mostly sleep. It gets about half of the processors, so it runs twice as long as alone.
tests:
	@echo "tests: running the tests of every crate"
	@$(if $(COMPILED),PAGE_REPORTED=$(PAGE_REPORTED) \
	BACKGROUND="scripts/fuzz $$((2 * $(FUZZ_SECONDS))) $(filter-out drawn,$(SEED))") scripts/test

# These tools are built without optimisation, which halves the cost of their installation, and they are still fast enough.
# They go into the build directory, so that no copy of the user's is replaced.
TOOLS := $(or $(CARGO_TARGET_DIR),target)/tools
export PATH := $(abspath $(TOOLS))/bin:$(PATH)

deny: ## Check licences and sources of all crates; installs cargo-deny if needed
	@command -v cargo-deny >/dev/null || { echo "deny: installing cargo-deny, about 90 CPU seconds"; \
	cargo install --quiet --locked --debug --config profile.dev.debug=false --root $(TOOLS) cargo-deny; }
	@echo "deny: checking licences, bans and sources of all crates"
	@cargo deny --log-level error check licenses bans sources

FUZZ_SECONDS := 20
# By default each run starts from the same seed, so that results are comparable. SEED=drawn draws a seed at random.
fuzz: fuzz-compile ## Fuzz the protocol clients (FUZZ_SECONDS=600 SEED=drawn); installs cargo-fuzz if needed
	@scripts/fuzz $(FUZZ_SECONDS) $(filter-out drawn,$(SEED))

.PHONY: fuzz-compile
fuzz-compile:
	@command -v cargo-fuzz >/dev/null || { echo "fuzz: installing cargo-fuzz, about 60 CPU seconds"; \
	cargo install --quiet --locked --debug --config profile.dev.debug=false --root $(TOOLS) cargo-fuzz || true; }
	@scripts/fuzz --compile

PAGE := $(TARGET)/page/sample.html
# The results of the page's tests, for the totals of `make test`.
PAGE_REPORTED := $(TARGET)/page/reported

web: page-asset page-tests ## Build the page from web/, compare it with the one in the binary, and test it in a browser

web-modules: setup-web
	npm --prefix web ci

page-asset: web-modules
	npm --prefix web run asset:check

page-tests: web-modules
	@echo "web: testing pages of generated results in chromium"
	@mkdir -p $(dir $(PAGE))
	$(call program,examples/sample,-p rumba-report --example sample) $(PAGE) >/dev/null
	$(call program,examples/sample,-p rumba-report --example sample) $(dir $(PAGE))ladder.html ladder >/dev/null
	$(call program,examples/sample,-p rumba-report --example sample) $(dir $(PAGE))steps.html steps >/dev/null
	$(call program,examples/sample,-p rumba-report --example sample) $(dir $(PAGE))suite.html suite >/dev/null
	$(call program,examples/sample,-p rumba-report --example sample) $(dir $(PAGE))proof.html proof >/dev/null
	$(call program,examples/sample,-p rumba-report --example sample) $(dir $(PAGE))history.html history >/dev/null
	$(call program,examples/sample,-p rumba-report --example sample) $(dir $(PAGE))hour.html hour
	$(if $(COMPILED),,cargo build -q -p rumba)
	RUMBA_PAGE=$(PAGE) RUMBA_BIN=$(TARGET)/debug/rumba RUMBA_PAGE_REPORTED=$(PAGE_REPORTED) npm --prefix web test

# These targets run in parallel: tidy and deny use one processor each for some seconds, and the page's tests wait at times.
.PHONY: rules-and-page
rules-and-page:
	@$(MAKE) --no-print-directory --keep-going --jobs --output-sync=target tidy deny web-if-there

# Without a browser or Node.js, each test of the page is reported as skipped, as tests of crates are.
.PHONY: web-if-there
web-if-there:
	@mkdir -p $(dir $(PAGE_REPORTED)) && rm -f $(PAGE_REPORTED)
	@if scripts/setup web-there; then $(MAKE) --no-print-directory web; \
	else sed -n 's/^test("\(.*\)", .*/skipped: page: \1 needs Browser: run make web to see what is missing/p' \
	web/test/*.test.mjs > $(PAGE_REPORTED); echo "web: skipped; \`make web\` prints how to install what is missing"; fi

setup-demo setup-test setup-bench setup-web: setup-%:
	@scripts/setup $*
