# All commands for this repository; `make help` lists them.

# Two SQLCiphers never share a scratch folder: SwiftPM does not see that the C headers changed under it.
ifeq ($(ENGINE),4)
suffix := -engine4
select := settings=$$(Scripts/sqlcipher4 --env) && eval "$$settings" &&
else ifneq ($(ENGINE),)
$(error ENGINE is 4, or not set for the SQLCipher that pkg-config finds; it is '$(ENGINE)')
endif

scratch := --scratch-path .build$(suffix)
demo := -c release --package-path Examples --scratch-path '$(CURDIR)/.build-examples$(suffix)'
server := --package-path Examples/NotesServer --scratch-path '$(CURDIR)/.build-notes$(suffix)'
# All suites of the store and its observers, and the random harnesses. The sanitizer cannot look
# into processes that are killed. A power loss is tried with what one thread has written.
space := $(subst ,, )
tsan_files := $(wildcard Tests/CofferTests/Store/*Tests.swift Tests/CofferTests/Observation/*Tests.swift) \
	$(filter-out %/KillTests.swift %/KillDuringRekeyTests.swift %/BucketProcessTests.swift %/KeyringVerbTests.swift %/RotationRaceTests.swift %/KillDuringRotateListTests.swift \
		%/KillDuringCompactTests.swift %/PowerLossOfKeyringTests.swift %/PowerLossOfLargeRekeyTests.swift %/PowerLossOfCompactTests.swift,$(wildcard Tests/CofferTests/Proof/*Tests.swift))
tsan_suites := CofferTests\.($(subst $(space),|,$(basename $(notdir $(tsan_files)))))/
sources := Package.swift Sources Tests Examples/Package.swift Examples/Airports Examples/Cookbook \
	Examples/Downloads \
	Examples/Fleet Examples/Flights Examples/NotesServer/Package.swift Examples/NotesServer/Sources \
	Examples/NotesServer/Tests Examples/Replica Examples/Report Examples/Sessions \
	Benchmarks/Package.swift Benchmarks/Sources \
	Benchmarks/Micro/Package.swift Benchmarks/Micro/Sources Benchmarks/Micro/Benchmarks

.PHONY: help setup mandoc openssl data wheels build install uninstall deb test demo servers notes docs lint format pictures manual session clean tsan proof fuzz guards bench bench-quick \
	bench-check bench-micro bench-micro-check

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'ENGINE=4          build, test, demo, servers, notes, guards, bench-…: with SQLCipher 4 where the system has 3.x'
	@echo 'FILTER=<pattern>  test: only the tests whose names match; bench-micro…: a room, or names;'
	@echo '                  guards, proof: their names'
	@echo 'SKIP=<pattern>    test: without the tests whose names match'
	@echo 'SERVERS=1         demo: a replica in the bucket of a storage service too'
	@echo 'LONG=1            test, proof: the long ones too'

setup: ## install what is missing of SQLCipher and pkg-config
	@Scripts/setup

data: ## fetch the table of flights of a test, the demo and the benchmarks
	@Scripts/flights

wheels: ## fetch from PyPI what some tests use
	@Scripts/wheels

build: setup ## build library, tool and test helpers, for debugging
	@$(select) swift build $(scratch)

install: setup ## build the tool for release and install it: PREFIX (/usr/local), DESTDIR
	@$(if $(ENGINE),echo 'install: links the SQLCipher of the system: leave ENGINE out' >&2; exit 2;) \
		DESTDIR='$(DESTDIR)' Scripts/install $(if $(PREFIX),'$(PREFIX)')

uninstall: ## remove what install has put there
	@DESTDIR='$(DESTDIR)' Scripts/install --uninstall $(if $(PREFIX),'$(PREFIX)')

deb: ## make Debian packages for Debian 12 and 13; LONG=1: install and try each in a new system too
	@Scripts/deb $(if $(filter 1,$(LONG)),--check)

# Foundation's Process reads behind the list of descriptors if a program has more than 1 300 of them,
# and crashes where no memory follows. So few tests run at once, in one heap with room at its end.
# Each has threads of its own: more at once would only make each slower, up to its time limit.
few := --experimental-maximum-parallelization-width 4
roomy := MALLOC_ARENA_MAX=1 MALLOC_TOP_PAD_=16777216

# Nobody debugs in CI: no debug information, fast C code, mostly that of derivations, and no checks
# of the tool's own options at each of its starts, which take four times as long as its work. Swift
# code is compiled as for debugging, which takes the least time, and by few compilers, because each
# expands the macros of all suites. The tests are found by the index.
quick := $(if $(filter true,$(CI)),-c release -debug-info-format none --enable-index-store \
	$(addprefix -Xswiftc ,-Onone -enable-testing -no-whole-module-optimization -enable-batch-mode -driver-batch-size-limit 100))

openssl:
	@command -v openssl >/dev/null || ! command -v apt-get >/dev/null || Scripts/setup openssl

test: setup data wheels openssl ## build and run the tests
	@$(select) $(if $(filter 1,$(LONG)),COFFER_LONG_TESTS=1) COFFER_TEST_ENGINE=$(ENGINE) $(roomy) \
		swift test $(scratch) $(quick) $(few) $(if $(FILTER),--filter '$(FILTER)') \
		$(if $(SKIP),--skip '$(SKIP)')

demo: setup data ## run the example programs, built for release
	@echo 'Building the Examples for release; the first time takes some minutes.'
	@$(select) swift run --quiet $(demo) Airports
	@$(select) swift run --quiet $(demo) Cookbook
	@$(select) swift run --quiet $(demo) Downloads
	@$(select) swift run --quiet $(demo) Flights
	@$(select) swift run --quiet $(demo) Sessions
	@$(select) swift run --quiet $(demo) Replica
	@$(if $(filter 1,$(SERVERS)),$(select) settings=$$(Scripts/servers start) && eval "$$settings" && \
		swift run --quiet $(demo) Replica "$$COFFER_TEST_S3/demo-$$$$" \
			"$$COFFER_TEST_S3_CREDENTIALS" && Scripts/servers stop)
	@$(select) swift build --quiet $(demo) --product coffer
	@$(select) swift run --quiet $(demo) Fleet $(if $(filter 1,$(LONG)),200,24)

servers: setup ## test CofferService and the notes server, which is killed while 256 clients post
	@$(select) swift build $(server) --build-tests
	@$(select) swift test $(server) --skip-build
	@$(select) Examples/NotesServer/crash-test "$$(swift build $(server) --show-bin-path)/NotesServer"

notes: setup ## start the notes server, an example, on port 8080
	@$(select) swift run $(server) NotesServer

docs: setup ## make the documentation as a static site in .build-docs/site; fails on a broken link
	@$(select) swift build $(scratch)
	@$(select) Scripts/docs "$$(swift build $(scratch) --show-bin-path)"

tsan: setup ## run the store's tests under the thread sanitizer, some minutes
	@$(select) $(if $(FILTER),,COFFER_TSAN=1) swift test --sanitize=thread -Xswiftc -DCOFFER_TSAN $(quick) $(few) \
		--scratch-path .build-tsan$(suffix) --filter '$(or $(FILTER),$(tsan_suites))'

proof: setup ## put the store to the proof on both engines; writes Documentation/proof.md
	@$(if $(filter 1,$(LONG)),COFFER_LONG_TESTS=1) COFFER_TEST_OPTIONS='$(quick) $(few)' \
		$(roomy) Scripts/proof $(FILTER)

fuzz: setup ## read bytes of libFuzzer's choice as keyrings, for a minute
	@$(select) Scripts/fuzz

guards: setup ## switch guards off, which proof or tests have to notice; writes Documentation/guards.md
	@$(select) Scripts/guards $(FILTER)

# Where there is no apt, whoever has mandoc lints the pages.
mandoc:
	@command -v mandoc >/dev/null || ! command -v apt-get >/dev/null || Scripts/setup mandoc

lint: mandoc ## check the format of all Swift sources and of the manual pages
	@swift format lint --strict --recursive --parallel $(sources)
	@Scripts/manual --lint

format: ## format all Swift sources
	@swift format --in-place --recursive --parallel $(sources)

pictures: ## draw Documentation/pictures/*.svg from their text
	@Scripts/pictures

manual: setup mandoc ## fill Documentation/manual/*.1 from the tool's own help, and lint the pages
	@$(select) swift build $(scratch) --product coffer && \
		Scripts/manual "$$(swift build $(scratch) --show-bin-path)/coffer"

session: setup ## record the session that the README shows
	@$(select) swift build $(scratch) --product coffer && \
		Scripts/session "$$(swift build $(scratch) --show-bin-path)/coffer"

clean: ## remove all builds but that of SQLCipher 4
	rm -rf .build .build-engine4 .build-install .build-deb .build-guards .build-tsan* .build-examples .build-examples-engine4 .build-notes .build-notes-engine4 .build-docs .build-bench* .build-micro*

bench: setup ## measure all workloads, systems and engines, about fifteen minutes after the build
	@Benchmarks/run full

bench-quick: setup ## measure on one engine, under two minutes after the build
	@Benchmarks/run quick

bench-check: setup ## count instructions; fails if a ratio to plain C got worse by more than 5 %
	@Benchmarks/run check

bench-micro: setup ## measure each room of Coffer by itself, two minutes after the build
	@Benchmarks/run micro $(if $(FILTER),'$(FILTER)')

bench-micro-check: setup ## count reads and writes of files; fails if a count changed
	@Benchmarks/run micro-check $(if $(FILTER),'$(FILTER)')
