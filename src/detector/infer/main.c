/* baton-model: runs models, in a process of its own that can be lost.
 *
 *   START ─▶ the engine's library is loaded ─▶ fences (confine.h) ─▶ OPEN, RUN, CLOSE … end
 *
 * It is started by baton-detector alone, with a socket. Models are strangers' bytes: before the
 * first of them is read, files, network and privileges are given up. With one thread a model also
 * has no further thread and no memory that can be both filled and run.
 */
#include "detector/infer/serve.h"
#include "detector/infer/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

static const char usage[] =
    "usage: baton-model --inherited\n"
    "\n"
    "Started by baton-detector, with descriptors that it inherits; of no use by hand.\n"
    "It runs the models of one pipeline on pictures in shared memory.\n";

int main(int argc, char **argv)
{
    pid_t parent = getppid();

    if (argc != 2 || strcmp(argv[1], "--inherited") != 0) {
        bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
        (void)fputs(usage, is_help ? stdout : stderr);
        return is_help ? EXIT_SUCCESS : EXIT_USAGE;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)close_range(WIRE_FD + 1, ~0U, 0);
    if (getppid() != parent) {
        return EXIT_USAGE;
    }
    serve_models(WIRE_FD);
    _exit(EXIT_SUCCESS); /* no library's handlers, which might want what is forbidden now */
}
