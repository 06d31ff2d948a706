# Thin on purpose: every target is one script in build/scripts.

.DEFAULT_GOAL := help
.PHONY: help run build test bench lint package clean

help: ## what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  make run ARGS="--addr 127.0.0.1:7000" passes flags on.'

run: ## install what is missing, build, open the window (without a display: the hub and the address of its browser inbox)
	@exec bash build/scripts/run.sh $(ARGS)

build: ## build/bin/deskbell and build/bin/deskbell-headless
	@bash build/scripts/build.sh

test: ## install what is missing, run every test: Go, frontend, browser, the real window
	@bash build/scripts/test.sh

bench: ## Go benchmarks, and the time and memory the window takes
	@bash build/scripts/bench.sh

lint: ## formatting, vet, staticcheck, known vulnerabilities, pins
	@bash build/scripts/lint.sh

package: ## a .deb in build/bin
	@bash build/scripts/package.sh

clean: ## remove what the build made (not the installed system packages)
	@rm -rf build/bin build/.stamps frontend/node_modules frontend/test-results build/pitest/node_modules build/maptest/node_modules
	@find frontend/dist -mindepth 1 ! -name .gitkeep -delete
