/*
 * seckillctl: prepare, watch and prove a sale.  main() finds the verb; what a
 * verb does is in ctl_<verb>.c.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_backend.h"

#define CTL_VERB(name)  extern const ctl_verb_t  ctl_##name##_verb;
#include "ctl_verbs_x.h"
#undef CTL_VERB

static const ctl_verb_t *const  ctl_verbs[] = {
#define CTL_VERB(name)  &ctl_##name##_verb,
#include "ctl_verbs_x.h"
#undef CTL_VERB
};

#define CTL_VERBS  (sizeof(ctl_verbs) / sizeof(ctl_verbs[0]))


static void
ctl_print_help(void)
{
    size_t  i;

    puts("usage: seckillctl [-c FILE] [--json] VERB ...\n"
         "\n"
         "Prepares, watches and proves a flash sale.\n"
         "\n"
         "verbs:");

    for (i = 0; i < CTL_VERBS; i++) {
        printf("  %-9s %s\n", ctl_verbs[i]->name, ctl_verbs[i]->summary);
    }

    puts("\n"
         "options, before or after the verb:\n"
         "  -c, --config FILE  settings of seckilld, default " CTL_CONF_PATH "\n"
         "      --json         answer in JSON on stdout\n"
         "  -h, --help         this text, or that of a verb\n"
         "\n"
         "exit: 0 fine, 1 the answer is no, 2 usage or settings, 3 a server cannot be\n"
         "reached, 4 refused by a safety check, 5 partly done\n"
         "\n"
         "\"seckillctl VERB --help\" tells more.");
}


static const ctl_verb_t *
ctl_find_verb(const char *name)
{
    size_t  i;

    for (i = 0; i < CTL_VERBS; i++) {
        if (strcmp(ctl_verbs[i]->name, name) == 0) {
            return ctl_verbs[i];
        }
    }

    return NULL;
}


int
main(int argc, char **argv)
{
    int                         opt, rc;
    ctl_t                       ctl;
    static char                 program[] = "seckillctl";
    static const struct option  options[] = { CTL_OPTIONS };

    memset(&ctl, 0, sizeof(ctl));
    ctl.conf_path = CTL_CONF_PATH;

    /* a server that goes away is an error to report, not the end */
    signal(SIGPIPE, SIG_IGN);

    while ((opt = getopt_long(argc, argv, "+c:h", options, NULL)) != -1) {
        switch (opt) {

        case 'c':
            ctl.conf_path = optarg;
            break;

        case 'j':
            ctl.json = 1;
            break;

        case 'h':
            ctl_print_help();
            return ctl_finish(&ctl, CTL_FINE);

        default:
            return ctl_usage(&ctl, NULL);
        }
    }

    if (optind == argc) {
        return ctl_usage(&ctl, "a verb is missing");
    }

    ctl.verb = ctl_find_verb(argv[optind]);

    if (ctl.verb == NULL) {
        return ctl_usage(&ctl, "no such verb: \"%s\"", argv[optind]);
    }

    argc -= optind;
    argv += optind;
    argv[0] = program;                  /* getopt's own messages begin with it */
    optind = 0;                         /* glibc: scan anew */

    rc = ctl.verb->run(&ctl, argc, argv);
    ctl_close(&ctl);

    return ctl_finish(&ctl, rc);
}
