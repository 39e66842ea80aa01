/* baton-model: runs models, in a process of its own that can be lost (wire.h). Models are
 * strangers' bytes: before the first of them is read, files, network and privileges are given up.
 * With one thread a model also has no further thread and no memory that can be both filled and run.
 */
#include "detector/camera/confine.h"
#include "detector/helper/helper.h"
#include "detector/infer/wire.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct server {
    struct library *library;
    struct network networks[WIRE_SESSIONS_MAX]; /* those that are open have a library */
    float *outputs;                             /* WIRE_OUTPUT_BYTES */
    struct wire_request request;
    struct wire_answer answer;
};

static int map(int fd, size_t bytes, int protection, void **ret, struct baton_error *reterr)
{
    void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED) {
        return error_set(reterr, BATON_ENOMEM, "%zu bytes of shared memory cannot be had", bytes);
    }
    *ret = memory;
    return 0;
}

static int start(struct server *server, int memory, struct baton_error *reterr)
{
    struct confinement confinement = {0}; /* no port, no device */
    const struct library_options *options = &server->request.library;
    void *outputs = NULL;
    int code = library_load(&server->library, options, reterr);

    code = code ? code : map(memory, WIRE_OUTPUT_BYTES, PROT_READ | PROT_WRITE, &outputs, reterr);
    if (!code) {
        confinement.uses_hardware = server->library->uses_hardware;
        code = confine_process(&confinement, reterr);
    }
    if (!code && options->threads <= 1 && !confinement.uses_hardware) {
        code = confine_stream(&confinement, reterr);
    }
    if (!code) {
        server->outputs = outputs;
        memcpy(server->answer.name, server->library->name, sizeof(server->answer.name));
    }
    return code;
}

/* The library reads the input where the parent wrote it. If it refuses the model, the parent ends
 * this process. */
static int open_model(struct server *server, const int fds[2], struct baton_error *reterr)
{
    const struct wire_request *request = &server->request;
    struct network network = {.library = server->library, .input = request->largest};
    void *bytes = NULL;
    void *input = NULL;
    size_t count = 0;
    int code;

    (void)shape_numbers(&request->largest, &count);
    code = map(fds[0], request->model_bytes, PROT_READ, &bytes, reterr);
    code = code ? code : map(fds[1], count * sizeof(float), PROT_READ | PROT_WRITE, &input, reterr);
    if (!code) {
        network.values = input;
        code = network.library->open(&network, bytes, request->model_bytes, reterr);
    }
    if (bytes) {
        (void)munmap(bytes, request->model_bytes);
    }
    if (!code) {
        server->networks[request->session] = network;
        server->answer.batch_max = network.input.sides[0];
    }
    return code;
}

static int run_model(struct server *server, struct network *network, struct baton_error *reterr)
{
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    size_t used = 0;
    int count = network->library->run(network, server->request.pictures, outputs, reterr);

    for (int i = 0; i < count; i++) {
        size_t numbers = 0;
        (void)shape_numbers(&outputs[i].shape, &numbers);
        server->answer.shapes[i] = outputs[i].shape;
        if (numbers == 0) {
            continue;
        }
        if (numbers > WIRE_OUTPUT_BYTES / sizeof(float) - used) {
            return error_set(reterr, BATON_EINVAL, "outputs of more than %d bytes",
                             WIRE_OUTPUT_BYTES);
        }
        memcpy(server->outputs + used, outputs[i].values, numbers * sizeof(float));
        used += numbers;
    }
    server->answer.output_count = count < 0 ? 0 : count;
    return count < 0 ? count : 0;
}

static int serve(struct server *server, const int fds[2], struct baton_error *reterr)
{
    const struct wire_request *request = &server->request;
    bool is_known =
        request->session < WIRE_SESSIONS_MAX && server->networks[request->session].library != NULL;

    if (request->type == WIRE_START && !server->library) {
        return start(server, fds[0], reterr);
    }
    if (request->type == WIRE_OPEN && server->library && !is_known &&
        request->session < WIRE_SESSIONS_MAX) {
        return open_model(server, fds, reterr);
    }
    if (request->type == WIRE_RUN && is_known) {
        return run_model(server, &server->networks[request->session], reterr);
    }
    return error_set(reterr, BATON_EPROTO, "request %d: not now", (int)request->type);
}

static void answer(struct server *server, const int fds[2])
{
    struct baton_error error = {0};

    server->answer.code = server->answer.output_count = 0;
    server->answer.code = serve(server, fds, &error);
    if (server->answer.code) {
        (void)snprintf(server->answer.error, sizeof(server->answer.error), "%s", error.message);
    }
    helper_close(fds);
}

/* The first request confines the process. The process ends after this, which closes and frees all
 * that is open. */
static void serve_models(int socket)
{
    struct server *server = calloc(1, sizeof(*server));
    const size_t bytes = sizeof(server->request);
    int fds[HELPER_PASSED];

    while (server && helper_receive(socket, &server->request, bytes, fds, 0) == (ssize_t)bytes) {
        answer(server, fds);
        if (send(socket, &server->answer, sizeof(server->answer), MSG_NOSIGNAL) < 0) {
            break;
        }
    }
}

int main(int argc, char **argv)
{
    helper_begin(argc, argv, "It runs the models of one pipeline on pictures in shared memory.", 1);
    /* Weights belong into the heap, which has huge pages (helper_environment): a mapping of their
     * own begins anywhere, and has fewer of them, by up to half of the model's speed. */
    (void)mallopt(M_MMAP_MAX, 0);
    serve_models(HELPER_FD);
    _exit(EXIT_SUCCESS); /* runs no exit handlers of libraries: the fences may forbid their calls */
}
