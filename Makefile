# Everything a developer types. On a fresh Debian with Go alone each target does
# its own set-up.

GO      ?= go
TEST    ?= ./...
TOOL    := $(GO) tool -modfile=tools/go.mod
VERSION := $(shell git -c safe.directory='*' describe --tags --always --dirty 2>/dev/null)
LDFLAGS := $(if $(VERSION),-X main.version=$(VERSION))
BUILD   := CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false

.DEFAULT_GOAL := help
.PHONY: help build dev demo test torment contract collect check clean setup

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: bin/versitygw ## build bin/fenceline, bin/fenceline-dev and the S3 server for development
	$(BUILD) -ldflags '$(LDFLAGS)' -o bin/ ./cmd/fenceline ./cmd/fenceline-dev

dev: setup build ## run everything on an embedded PostgreSQL and S3 server, kept in .fenceline/
	@bin/fenceline-dev up

demo: setup build ## see a paused worker being refused
	@bin/fenceline-dev demo

test: setup build ## run the tests (TEST='-run Publish ./catalog' for some, S3=URL and the AWS_* keys for another S3 server)
	@tools/setup gcc
	CGO_ENABLED=1 bin/fenceline-dev exec --servers-only $(if $(S3),--s3 $(S3)) -- $(GO) test -race -shuffle=on -count=1 $(TEST)

torment: setup build ## kill the service at random, and check what it has done (TORMENT='--kills 200 --seed 7')
	@bin/fenceline-dev torment $(TORMENT)

contract: setup build ## walk docs/contract.md row by row, with real faults (CONTRACT='--only Renew')
	@bin/fenceline-dev contract $(CONTRACT)

collect: setup build ## let the collector loose on a million objects (COLLECT='--objects 100000')
	@bin/fenceline-dev collect $(COLLECT)

check: ## formatting, vet, staticcheck, tidy modules, docker-compose.yml, deploy/alerts.yaml
	@unformatted=$$($(TOOL) gofumpt -l .) && if [ -n "$$unformatted" ]; then \
		echo "not formatted with gofumpt:" $$unformatted >&2; exit 1; fi
	CGO_ENABLED=0 $(GO) vet ./...
	CGO_ENABLED=0 $(TOOL) staticcheck ./...
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff
	cd tools && CGO_ENABLED=0 $(GO) test ./composecheck && CGO_ENABLED=0 $(GO) run ./composecheck ..
	cd tools/alertcheck && $(GO) mod tidy -diff
	cd tools/alertcheck && CGO_ENABLED=0 $(GO) test . && CGO_ENABLED=0 $(GO) run . ../..

clean: ## remove what was built; .fenceline/ stays
	rm -rf bin

setup:
	@tools/setup postgres

# Two minutes on a cold cache, and then only when its version changes.
bin/versitygw: tools/go.mod tools/go.sum
	$(BUILD) -modfile=tools/go.mod -o $@ github.com/versity/versitygw/cmd/versitygw
	@touch $@
