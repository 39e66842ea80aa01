/* The child's side. */
#include "detector/helper/helper.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

void helper_begin(int argc, char **argv, const char *what)
{
    pid_t parent = getppid();

    if (argc != 2 || strcmp(argv[1], "--inherited") != 0) {
        bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
        (void)fprintf(is_help ? stdout : stderr,
                      "usage: %s --inherited\n\n"
                      "Started by baton-detector, with descriptors that it inherits; of no use by "
                      "hand.\n%s\n",
                      program_invocation_short_name, what);
        exit(is_help ? EXIT_SUCCESS : EXIT_USAGE);
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0 ||
        getppid() != parent) { /* it died before we asked to be told */
        exit(EXIT_USAGE);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    /* Decoders and models free a large piece for each frame, and each time the C library would
     * clear up all of its small ones. */
    (void)mallopt(M_MXFAST, 0);
}
