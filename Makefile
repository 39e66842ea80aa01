# The front door. CMake and its presets (CMakePresets.json) do the work behind it.
#
#   make help     lists what is here, from this file itself
#
# JOBS=N bounds what runs at once, PREFIX and DESTDIR place an installation, SECONDS_EACH=N is how
# long `make fuzz` stays with each target, SEEDS=FROM..TO and ASSEMBLIES=FROM..TO what `make sim`
# plays, SECONDS=N how long `make torture` lasts; TORTURE holds its other options. WING=baton,
# WING=detector or WING=fleet builds, tests and installs that wing alone (docs/architecture.md), with
# what it needs.
JOBS         ?= $(shell nproc)
PREFIX       ?= /usr/local
SEEDS        ?= 1..1000000
ASSEMBLIES   ?= 1..50000
SECONDS_EACH ?= 60
STAGES       ?= asan tsan plain fuzz lint
SECONDS      ?= 60
WING         ?=
WITH          = $(if $(WING),$(filter detector fleet,$(WING)),detector fleet)
export JOBS DESTDIR WING

.DEFAULT_GOAL := build
.PHONY: help deps deps-onnxruntime deps-optional build demo demo-physics demo-fleet check check-all bench sim chaos torture churn fuzz coverage lint format lines docs deb install clean

help: ## lists these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 26

deps: ## installs all build dependencies that are missing (packaging/debian/control)
	@scripts/deps $(WITH) check lint

deps-onnxruntime: ## fetches ONNX Runtime, by which baton-detector runs models faster, from npm
	@scripts/deps-onnxruntime

deps-optional: ## fetches ONNX Runtime, Valkey 9 and an S3 server from npm into build-optional, for tests that use them
	@scripts/deps-onnxruntime build-optional
	@scripts/deps-valkey build-optional
	@scripts/deps-s3 build-optional

build: ## builds the release programs into build/bin, the library into build/lib
	@scripts/deps $(WITH)
	@scripts/build release

demo: ## five nodes on this machine: kill, stop, cut off and pass on the leader
	@scripts/deps
	@WING=baton scripts/build release baton baton-guardian baton-guardian-tls
	@build/bin/baton demo $(DEMO)

demo-physics: ## a simulation spread over five processes, which are killed; two pictures of it
	@scripts/deps
	@WING=baton scripts/build release example_softbody example_softbody_spread baton-guardian
	@python3 -B examples/softbody/run.py $(DEMO)

demo-fleet: ## a fleet of detectors with cameras and a page: its master, a worker and an owner are killed
	@scripts/deps detector fleet check
	@scripts/build release
	@python3 -B examples/fleet/demo.py $(DEMO)

check: ## builds for development and runs every test once
	@scripts/deps $(WITH) check
	@scripts/check dev

check-all: ## every test once more, under each sanitizer, fuzzing and lint; STAGES="dev lint" runs only those
	@scripts/deps $(WITH) check lint
	@scripts/check $(STAGES)

bench: build ## every figure of the README, measured here and now
	@scripts/deps $(WITH) check
	@scripts/bench && bench/jobs/peers && bench/detector && build/bin/baton-bench-web

sim: build ## plays a million seeds of each core, 50,000 of the sessions and of pools, and every planted bug
	@build/bin/baton-sim --seeds $(SEEDS) --jobs $(JOBS)
	@build/bin/baton-sim --mutants
	@build/bin/baton-sim --lease --seeds $(SEEDS) --jobs $(JOBS)
	@build/bin/baton-sim --lease --mutants
	@build/bin/baton-sim --sessions --seeds $(ASSEMBLIES) --jobs $(JOBS)
	@build/bin/baton-sim --sessions --mutants
	@build/bin/baton-sim --work --seeds $(ASSEMBLIES) --jobs $(JOBS)

chaos: ## two minutes each of nodes by themselves, on Redis, and beside plain ones: killed, stopped, cut off
	@scripts/deps $(WITH) check
	@scripts/build dev && BATON_CHAOS_SECONDS=120 ctest --test-dir build-dev -R 'faults_.*(chaos|mixed)' -V

torture: ## torments real groups for SECONDS seconds, judges what their programs did (as root)
	@scripts/deps $(WITH) check
	@scripts/build release
	@python3 tests/torture/torture.py --seconds $(SECONDS) $(TORTURE)

churn: ## five minutes of cameras added, changed and removed at random; nothing may be left behind
	@scripts/deps $(WITH) check
	@scripts/build dev && BATON_CHURN_SECONDS=300 ctest --test-dir build-dev -R detector_churn -V

fuzz: ## runs each fuzz target for SECONDS_EACH seconds
	@scripts/deps $(WITH) check lint
	@scripts/fuzz $(SECONDS_EACH)

coverage: ## lines and branches of src/raft that the tests reach; fails below 95 and 90 %
	@scripts/deps $(WITH) check lint
	@scripts/coverage

lint: ## clang-format, cppcheck and the whole of clang-tidy
	@scripts/deps $(WITH) check lint
	@scripts/lint

format: ## puts every source file into the house's format
	@scripts/deps $(WITH) check lint
	@scripts/format

lines: ## files and lines by wing; COMMITS="A B" compares
	@scripts/lines $(COMMITS)

docs: ## checks the manual pages and the links of the documents
	@scripts/deps $(WITH) check
	@scripts/docs

deb: ## builds the Debian packages of what is committed into build-deb, and checks them with lintian
	@scripts/deps detector fleet check lint deb
	@scripts/deb

install: build ## installs into DESTDIR/PREFIX
	@cmake --install build --prefix "$(PREFIX)"

clean: ## removes every build folder
	@rm -rf build build-dev build-asan build-tsan build-coverage build-fuzz build-deb build-optional
