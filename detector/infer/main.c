/* baton-model: runs models, in a process of its own that can be lost.
 *
 *   START ─▶ the engine's library is loaded ─▶ fences (confine.h) ─▶ OPEN, RUN … end
 *
 * It is started by baton-detector alone, with a socket. Models are strangers' bytes: before the
 * first of them is read, files, network and privileges are given up. With one thread a model also
 * has no further thread and no memory that can be both filled and run.
 */
#include "detector/helper/helper.h"
#include "detector/infer/serve.h"

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    helper_begin(argc, argv, "It runs the models of one pipeline on pictures in shared memory.", 1);
    /* Weights belong into the heap, which has huge pages (helper_environment): a mapping of their
     * own begins anywhere, and has fewer of them, by up to half of the model's speed. */
    (void)mallopt(M_MMAP_MAX, 0);
    serve_models(HELPER_FD);
    _exit(EXIT_SUCCESS); /* runs no exit handlers of libraries: the fences may forbid their calls */
}
