/* baton-model: runs models, in a process of its own that can be lost (wire.h). Models are
 * strangers' bytes: before the first of them is read, files, network and privileges are given up.
 * With one thread a model also has no further thread and no memory that can be both filled and run.
 */
#include "detector/camera/confine.h"
#include "detector/infer/wire.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    struct library *library;
    struct network networks[WIRE_MODELS_MAX];
    float *outputs; /* WIRE_OUTPUT_BYTES, and then the input */
    struct wire_request request;
    struct wire_answer answer;
} server;

/* Closes the descriptor. */
static int map(int fd, size_t bytes, int protection, void **ret, struct baton_error *reterr)
{
    void *memory = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);

    (void)close(fd);
    if (memory == MAP_FAILED) {
        return error_set(reterr, BATON_ENOMEM, "%zu bytes of shared memory cannot be had", bytes);
    }
    *ret = memory;
    return 0;
}

static int start(struct baton_error *reterr)
{
    struct confinement confinement = {0}; /* no port, no device */
    const struct library_options *options = &server.request.library;
    void *outputs = NULL;
    int code = library_load(&server.library, options, reterr);

    code = code ? code
                : map(HELPER_FILE, server.request.memory_bytes, PROT_READ | PROT_WRITE, &outputs,
                      reterr);
    if (!code) {
        server.outputs = outputs;
        memcpy(server.answer.name, server.library->name, sizeof(server.answer.name));
        confinement.uses_hardware = server.library->uses_hardware;
        code = confine_process(&confinement, reterr);
    }
    if (!code && options->threads <= 1 && !confinement.uses_hardware) {
        code = confine_stream(&confinement, reterr);
    }
    return code;
}

/* The library reads the input where the parent wrote it. If it refuses the model, the parent ends
 * this process. */
static int open_model(struct baton_error *reterr)
{
    const struct wire_request *request = &server.request;
    struct network *network = &server.networks[request->model];
    int fd = WIRE_MODELS + (int)request->model;
    struct stat status = {0};
    void *bytes = NULL;
    int code;

    if (fstat(fd, &status) != 0 || status.st_size < 1 || status.st_size > MODEL_BYTES_MAX) {
        return error_set(reterr, BATON_EINVAL, "a file of %lld bytes: must be 1 to %d",
                         (long long)status.st_size, MODEL_BYTES_MAX);
    }
    *network = (struct network){.library = server.library,
                                .input = request->largest,
                                .values = server.outputs + WIRE_OUTPUT_BYTES / sizeof(float)};
    code = map(fd, (size_t)status.st_size, PROT_READ, &bytes, reterr);
    if (!code) {
        code = network->library->open(network, bytes, (size_t)status.st_size, reterr);
        (void)munmap(bytes, (size_t)status.st_size);
    }
    server.answer.batch_max = network->input.sides[0];
    return code;
}

static int run_model(struct baton_error *reterr)
{
    struct network *network = &server.networks[server.request.model];
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    size_t used = 0;
    int count = network->library->run(network, server.request.pictures, outputs, reterr);

    for (int i = 0; i < count; i++) {
        size_t numbers = (size_t)shape_numbers(&outputs[i].shape); /* as the library has checked */
        server.answer.shapes[i] = outputs[i].shape;
        if (numbers == 0) {
            continue;
        }
        if (numbers > WIRE_OUTPUT_BYTES / sizeof(float) - used) {
            return error_set(reterr, BATON_EINVAL, "outputs of more than %d bytes",
                             WIRE_OUTPUT_BYTES);
        }
        memcpy(server.outputs + used, outputs[i].values, numbers * sizeof(float));
        used += numbers;
    }
    server.answer.output_count = count < 0 ? 0 : count;
    return count < 0 ? count : 0;
}

static void serve(void)
{
    struct wire_answer *answer = &server.answer;
    struct baton_error error = {0};

    answer->output_count = 0;
    answer->code = server.request.type == WIRE_START  ? start(&error)
                   : server.request.type == WIRE_OPEN ? open_model(&error)
                                                      : run_model(&error);
    if (answer->code) {
        (void)snprintf(answer->error, sizeof(answer->error), "%s", error.message);
    }
    (void)send(HELPER_FD, answer, sizeof(*answer), MSG_NOSIGNAL);
}

int main(int argc, char **argv)
{
    helper_begin(argc, argv, "It runs the models of one pipeline on pictures in shared memory.");
    /* Weights belong into the heap, which has huge pages (helper_environment): a mapping of their
     * own begins anywhere, and has fewer of them, by up to half of the model's speed. */
    (void)mallopt(M_MMAP_MAX, 0);
    /* The first request confines the process. Its end closes and frees all that is open. */
    while (recv(HELPER_FD, &server.request, sizeof(server.request), MSG_TRUNC) ==
           sizeof(server.request)) {
        serve();
    }
    _exit(EXIT_SUCCESS); /* runs no exit handlers of libraries: the fences may forbid their calls */
}
