# What people type.  nginx's own build compiles the module, out of its tree, in
# $(BUILD)/nginx; everything else is compiled here.  Nothing is written outside
# $(BUILD) and run/, but for the figures of "make bench".
#
#   make SANITIZE=1          the same with ASan and UBSan, in build/asan
#   make V=1                 with the whole command lines
#   make NGINX_SRC=dir       the module for another nginx source tree (1.22 or newer)
#   make NGX_FLAGS=...       its configure arguments, see nginx -V; without, TLS and HTTP/2

SHELL     := /bin/bash
SANITIZE  ?=
BUILD     ?= $(if $(SANITIZE),build/asan,build)
NGINX_SRC ?=
NGX_FLAGS ?= --with-compat --with-http_ssl_module --with-http_v2_module
Q         := $(if $(V),,@)
JOBS      ?= $(shell nproc)

CC       ?= cc
CFLAGS   ?= -O2 -g
ASAN      = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SK_FLAGS  = -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -pthread \
            -Isrc/shared -Isrc/backend -Isrc/consumer -I$(BUILD)/gen \
            $(shell mysql_config --include 2>/dev/null) \
            $(if $(SANITIZE),$(ASAN),-fstack-protector-strong -D_FORTIFY_SOURCE=2) \
            $(CPPFLAGS) $(CFLAGS)
SK_LIBS   = $(if $(SANITIZE),$(ASAN)) -pthread -Wl,--as-needed $(LDFLAGS) \
            -lhiredis -linih -lmicrohttpd -lsystemd -lyajl -lcrypto -lcurl -lz $(shell mysql_config --libs 2>/dev/null)

# a program is a file with a main(); the rest is one archive that all link
PROG_SRCS := src/consumer/seckilld.c tools/seckillctl/seckillctl.c
SK_SRCS   := $(filter-out $(PROG_SRCS),$(wildcard src/shared/*.c src/backend/*.c \
                 src/consumer/*.c tools/seckillctl/*.c))
UNIT_SRCS := $(wildcard t/unit/*.c)
UNIT_MAIN := $(if $(UNIT_SRCS),$(shell grep -lE '^(int )?main\b' $(UNIT_SRCS)))
SK_OBJS   := $(SK_SRCS:%.c=$(BUILD)/obj/%.o)
PROG_OBJS := $(PROG_SRCS:%.c=$(BUILD)/obj/%.o)
UNIT_OBJS := $(UNIT_SRCS:%.c=$(BUILD)/obj/%.o)
UNIT_HELP := $(filter-out $(UNIT_MAIN:%.c=$(BUILD)/obj/%.o),$(UNIT_OBJS))
UNITS     := $(UNIT_MAIN:t/unit/%.c=$(BUILD)/unit/%)

MODULE      := $(BUILD)/ngx_http_seckill_module.so
MODULE_SRCS := config $(wildcard *.c src/http/* src/redis/* src/shared/* src/*.map) \
               $(wildcard lua/*.lua)
SCRIPTS     := $(BUILD)/gen/sk_scripts_data.h

.DELETE_ON_ERROR:
.PHONY: all module seckilld seckillctl test unit lint asan chaos soak demo bench up down deps clean help FORCE

all: module seckilld seckillctl  ## the module, seckilld and seckillctl (default)

module: $(MODULE) $(if $(SANITIZE),$(BUILD)/nginx_reachable.so)  ## the dynamic module, for the installed nginx or NGINX_SRC

seckilld: $(BUILD)/seckilld      ## the daemon that turns purchases into orders

seckillctl: $(BUILD)/seckillctl  ## the command line tool

deps:                            ## install missing Debian packages for all of this
	tools/deps.sh build demo test lint

test:                            ## install what is missing, build, run every test
	tools/deps.sh build demo test
	@tools/deps.sh browser || echo "no browser: t/browser is skipped"
	$(MAKE) -j$(JOBS) all units
	tools/test.sh $(BUILD)

unit: units                      ## plain C tests only, in seconds
	@set -e; for unit in $(UNITS); do echo "# $$unit"; $$unit; done

asan:                            ## every test with ASan and UBSan in module, daemon and tool
	$(MAKE) SANITIZE=1 BUILD=build/asan test

soak:                            ## tests of docs/cases.md with their literal times, over an hour; or FILES="t/a.t ..."
	tools/deps.sh build demo test
	$(MAKE) -j$(JOBS) all units
	SECKILL_SOAK=1 tools/test.sh $(BUILD) $(or $(FILES),$(shell grep -lE '^use Soak\b' t/*.t t/*/*.t))

chaos:                           ## sales under faults: every fault once, or ROUNDS=n SEED=s FAULT=name
	tools/deps.sh build demo test
	$(MAKE) -j$(JOBS) all
	SECKILL_BUILD=$(abspath $(BUILD)) tools/chaos/chaos.pl $(if $(ROUNDS),--rounds $(ROUNDS)) \
	    $(if $(SEED),--seed $(SEED)) $(if $(FAULT),--fault $(FAULT)) $(if $(ONLY),--only $(ONLY)) \
	    $(if $(USERS),--users $(USERS)) $(if $(REPORT),--report $(REPORT))

lint:                            ## cppcheck, clang-tidy, luacheck, shellcheck, perl -c, node --check
	tools/deps.sh build test lint
	$(MAKE) -j$(JOBS) $(BUILD)/nginx.stamp $(BUILD)/gen/.stamp
	tools/lint.sh $(BUILD)

demo:                            ## a whole sale in two minutes, prints the table
	tools/deps.sh build demo
	$(MAKE) -j$(JOBS) all
	tools/stack.sh demo $(BUILD)

bench:                           ## speed beside the floor and a Lua peer: bench.json, bench.svg
	tools/deps.sh build demo bench
	$(MAKE) -j$(JOBS) all
	tools/bench/run.sh $(BUILD)

up:                              ## start the demo stack and keep it running
	tools/deps.sh build demo
	$(MAKE) -j$(JOBS) all
	tools/stack.sh up $(BUILD)

down:                            ## stop what "make up" started
	tools/stack.sh down

clean:                           ## remove what was built
	rm -rf build

help:                            ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile tools/install.mk

# --- the module: configure takes half a minute, so only when its input changed

$(BUILD)/nginx.flags: FORCE
	@mkdir -p $(BUILD); tools/ngx-configure.sh --flags "$(NGINX_SRC)" "$(NGX_FLAGS)" "$(SANITIZE)" > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(BUILD)/nginx.stamp: config tools/ngx-configure.sh $(BUILD)/nginx.flags
	tools/ngx-configure.sh $(BUILD) "$(NGINX_SRC)" "$(NGX_FLAGS)" "$(SANITIZE)"
	@touch $@

$(MODULE): $(BUILD)/nginx.stamp $(MODULE_SRCS) tools/embed-lua.sh
	@tools/embed-lua.sh $(BUILD)/nginx/seckill/sk_scripts_data.h lua/*.lua
	@echo "  NGINX $@"
	$(Q)MAKEFLAGS=-j$(JOBS) $(MAKE) $(if $(V),,--silent --no-print-directory) -C $(BUILD)/nginx-src -f $(abspath $(BUILD))/nginx/Makefile modules
	@! nm -D --undefined-only $(BUILD)/nginx/ngx_http_seckill_module.so \
	    | grep -E ' (ngx_http_seckill|ngx_seckill|sk)_'   # ours, but defined nowhere
	@install -m 644 $(BUILD)/nginx/ngx_http_seckill_module.so $@
	@$(if $(SANITIZE),touch $(BUILD)/.sanitize,rm -f $(BUILD)/.sanitize)

# what makes the stock nginx quiet under LeakSanitizer
NGX_INCS = $(patsubst %,-isystem$(BUILD)/nginx-src/src/%,core event os/unix) -isystem$(BUILD)/nginx

$(BUILD)/nginx_reachable.so: t/asan/nginx_reachable.c $(BUILD)/nginx.stamp
	@echo "  CC    $<"
	$(Q)$(CC) -Wall -Wextra -Werror -D_GNU_SOURCE -O1 -g -fPIC -shared $(NGX_INCS) -o $@ $<

# --- everything else

$(BUILD)/cc.flags: FORCE
	@mkdir -p $(BUILD); echo '$(CC) $(SK_FLAGS) $(SK_LIBS)' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(BUILD)/gen/.stamp: $(wildcard lua/*.lua) tools/embed-lua.sh
	@mkdir -p $(@D)
	@tools/embed-lua.sh $(SCRIPTS) lua/*.lua
	@touch $@

$(BUILD)/obj/%.o: %.c $(BUILD)/cc.flags | $(BUILD)/gen/.stamp
	@mkdir -p $(@D); echo "  CC    $<"
	$(Q)$(CC) $(SK_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/src/shared/sk_scripts.o: $(BUILD)/gen/.stamp

$(BUILD)/obj/libseckill.a: $(SK_OBJS)
	@rm -f $@; echo "  AR    $@"
	$(Q)$(AR) rcs $@ $^

$(BUILD)/seckilld: $(BUILD)/obj/src/consumer/seckilld.o $(BUILD)/obj/libseckill.a
	@echo "  LINK  $@"
	$(Q)$(CC) -o $@ $^ $(SK_LIBS)

$(BUILD)/seckillctl: $(BUILD)/obj/tools/seckillctl/seckillctl.o $(BUILD)/obj/libseckill.a
	@echo "  LINK  $@"
	$(Q)$(CC) -o $@ $^ $(SK_LIBS)

.PHONY: units
units: $(UNITS)

$(BUILD)/unit/%: $(BUILD)/obj/t/unit/%.o $(UNIT_HELP) $(BUILD)/obj/libseckill.a
	@mkdir -p $(@D); echo "  LINK  $@"
	$(Q)$(CC) -o $@ $^ -lcmocka $(SK_LIBS)

.SECONDARY: $(UNIT_OBJS)

-include $(SK_OBJS:.o=.d) $(PROG_OBJS:.o=.d) $(UNIT_OBJS:.o=.d)

include tools/install.mk
