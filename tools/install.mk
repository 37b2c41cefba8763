# make install, make deb and what checks them; part of the Makefile.
#
#   make install DESTDIR=... PREFIX=/usr modulesdir=... unitdir=... sysconfdir=...
#
# The module goes where the installed nginx looks for modules.  A settings file
# that is there already is left alone.

PREFIX      ?= /usr/local
bindir      ?= $(PREFIX)/bin
sbindir     ?= $(PREFIX)/sbin
datadir     ?= $(PREFIX)/share
mandir      ?= $(datadir)/man
docdir      ?= $(datadir)/doc/nginx-seckill
sysconfdir  ?= /etc
unitdir     ?= $(PREFIX)/lib/systemd/system
modulesdir  ?= $(shell PATH=$$PATH:/usr/sbin nginx -V 2>&1 | sed -n 's/.*--modules-path=\([^ ]*\).*/\1/p')
INSTALL_SED  = sed -e 's|/usr/sbin/seckilld|$(sbindir)/seckilld|' -e 's|/usr/bin/seckillctl|$(bindir)/seckillctl|'

.PHONY: install install-module install-programs uninstall deb check-units check-docs check-rules

install: install-module install-programs  ## module, programs, units, man pages; DESTDIR and PREFIX

install-module: module
	@test -n "$(modulesdir)" || { echo "no nginx found: say modulesdir=..." >&2; exit 1; }
	install -d "$(DESTDIR)$(modulesdir)"
	install -m 644 $(MODULE) "$(DESTDIR)$(modulesdir)/"

install-programs: seckilld seckillctl
	install -d "$(DESTDIR)$(bindir)" "$(DESTDIR)$(sbindir)" "$(DESTDIR)$(unitdir)" \
	    "$(DESTDIR)$(mandir)/man1" "$(DESTDIR)$(mandir)/man5" "$(DESTDIR)$(mandir)/man8" \
	    "$(DESTDIR)$(datadir)/seckill/sql" "$(DESTDIR)$(datadir)/bash-completion/completions" \
	    "$(DESTDIR)$(sysconfdir)/seckill"
	install -m 755 $(BUILD)/seckilld "$(DESTDIR)$(sbindir)/seckilld"
	install -m 755 $(BUILD)/seckillctl "$(DESTDIR)$(bindir)/seckillctl"
	install -m 644 sql/*.sql "$(DESTDIR)$(datadir)/seckill/sql/"
	install -m 644 docs/man/seckillctl.1 "$(DESTDIR)$(mandir)/man1/"
	install -m 644 docs/man/seckilld.conf.5 "$(DESTDIR)$(mandir)/man5/"
	install -m 644 docs/man/seckilld.8 "$(DESTDIR)$(mandir)/man8/"
	install -m 644 tools/completion/seckillctl.bash "$(DESTDIR)$(datadir)/bash-completion/completions/seckillctl"
	@for unit in tools/systemd/*.service tools/systemd/*.timer; do \
	    echo "install $$unit"; \
	    $(INSTALL_SED) $$unit > "$(DESTDIR)$(unitdir)/$${unit##*/}" || exit 1; \
	    chmod 644 "$(DESTDIR)$(unitdir)/$${unit##*/}"; \
	done
	@test -e "$(DESTDIR)$(sysconfdir)/seckill/seckilld.conf" \
	    || install -m 644 tools/demo/seckilld.conf "$(DESTDIR)$(sysconfdir)/seckill/seckilld.conf"

uninstall:                       ## the reverse; settings stay
	rm -f "$(DESTDIR)$(modulesdir)/$(notdir $(MODULE))" \
	    "$(DESTDIR)$(sbindir)/seckilld" "$(DESTDIR)$(bindir)/seckillctl" \
	    "$(DESTDIR)$(mandir)/man1/seckillctl.1" "$(DESTDIR)$(mandir)/man5/seckilld.conf.5" \
	    "$(DESTDIR)$(mandir)/man8/seckilld.8" \
	    "$(DESTDIR)$(datadir)/bash-completion/completions/seckillctl" \
	    $(patsubst tools/systemd/%,"$(DESTDIR)$(unitdir)/%",$(wildcard tools/systemd/*))
	rm -rf "$(DESTDIR)$(datadir)/seckill"

# in a copy, because dpkg-buildpackage writes beside the folder it works in
deb:                             ## Debian packages, in build/deb
	rm -rf $(BUILD)/deb
	mkdir -p $(BUILD)/deb/nginx-seckill
	tar -c --exclude=./build --exclude=./run --exclude=./.git . | tar -x -C $(BUILD)/deb/nginx-seckill
	cd $(BUILD)/deb/nginx-seckill && env -u MAKEFLAGS -u MFLAGS dpkg-buildpackage -us -uc -b
	@ls -1 $(BUILD)/deb/*.deb

check-units: seckilld seckillctl  ## systemd's opinion of our units
	tools/check-units.sh $(BUILD)

check-rules:                     ## promtool's opinion of the alert rules
	promtool check rules tools/grafana/seckill.rules.yml
	cd tools/grafana && promtool test rules seckill.rules.test.yml

check-docs: seckilld seckillctl  ## manuals and references against the code
	tools/check-docs.sh $(BUILD)
