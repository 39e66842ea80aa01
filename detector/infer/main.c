/* baton-model: opens an archive and runs its models, in a process of its own that can be lost
 * (wire.h). They are strangers' bytes: before the first of them is read, files, network and
 * privileges are given up. With one thread a model also has no further thread and no memory that
 * can be both filled and run.
 */
#include "detector/camera/confine.h"
#include "detector/infer/wire.h"
#include "detector/model/archive.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* A small archive may promise so many entries that the library takes gigabytes for them. */
enum { OPENING_BYTES = 256 << 20 };

static struct {
    struct library *library;
    struct archive archive;
    struct network networks[PIPELINE_MODELS_MAX];
    float *outputs; /* WIRE_OUTPUT_BYTES, and then the input */
    rlim_t used;    /* address space, without any archive */
    struct wire_request request;
    struct wire_answer answer;
} server;

static int map(void **ret, struct baton_error *reterr)
{
    *ret = mmap(NULL, WIRE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, WIRE_MEMORY, 0);
    (void)close(WIRE_MEMORY);
    return *ret != MAP_FAILED ? 0
                              : error_set(reterr, BATON_ENOMEM,
                                          "%d bytes of shared memory cannot be had", WIRE_BYTES);
}

static rlim_t address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;

    if (file) {
        (void)!fscanf(file, "%lu", &pages);
        (void)fclose(file);
    }
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int start(struct baton_error *reterr)
{
    struct confinement confinement = {0}; /* no port, no device */
    const struct library_options *options = &server.request.library;
    void *outputs = NULL;
    int code = library_load(&server.library, options, reterr);

    code = code ? code : map(&outputs, reterr);
    if (!code) {
        server.outputs = outputs;
        server.used = address_space();
        memcpy(server.answer.name, server.library->name, sizeof(server.answer.name));
        confinement.uses_hardware = server.library->uses_hardware;
        code = confine_process(&confinement, reterr);
    }
    if (!code && options->threads <= 1 && !confinement.uses_hardware) {
        code = confine_stream(&confinement, reterr);
    }
    return code;
}

static int open_archive(struct baton_error *reterr)
{
    FILE *file = fdopen(WIRE_ARCHIVE_FILE, "r");
    struct rlimit all = {0}, little;
    size_t bytes = 0;
    void *text = NULL;
    int code;

    if (!file) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    (void)getrlimit(RLIMIT_AS, &all);
    little = (struct rlimit){server.used + OPENING_BYTES, all.rlim_max};
    (void)setrlimit(RLIMIT_AS, &little); /* if that is above the other one, that one holds */
    code = archive_open(&server.archive, file, server.request.archive_bytes_max, reterr);
    (void)setrlimit(RLIMIT_AS, &all);
    code = code ? code
                : archive_unpack(&server.archive, PIPELINE_FILE, PIPELINE_BYTES_MAX, &text, &bytes,
                                 reterr);
    if (!code) {
        memcpy(server.outputs, text, bytes);
        (void)munmap(text, bytes);
        server.answer.text_bytes = bytes;
    }
    return code;
}

/* The library reads the input where the parent wrote it. If it refuses the model, the parent ends
 * this process. */
static int open_model(struct baton_error *reterr)
{
    const struct wire_request *request = &server.request;
    struct network *network = &server.networks[request->model];
    size_t count = 0;
    void *bytes = NULL;
    int code =
        archive_unpack(&server.archive, request->file, MODEL_BYTES_MAX, &bytes, &count, reterr);

    if (!code) {
        *network = (struct network){.library = server.library,
                                    .input = request->largest,
                                    .values = server.outputs + WIRE_OUTPUT_BYTES / sizeof(float)};
        code = network->library->open(network, bytes, count, reterr);
        (void)munmap(bytes, count);
        server.answer.batch_max = network->input.sides[0];
    }
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
    answer->code = server.request.type == WIRE_START     ? start(&error)
                   : server.request.type == WIRE_ARCHIVE ? open_archive(&error)
                   : server.request.type == WIRE_OPEN    ? open_model(&error)
                                                         : run_model(&error);
    if (answer->code) {
        (void)snprintf(answer->error, sizeof(answer->error), "%s", error.message);
    }
    (void)send(HELPER_FD, answer, sizeof(*answer), MSG_NOSIGNAL);
}

int main(int argc, char **argv)
{
    helper_begin(argc, argv, "It runs the models of one archive on pictures in shared memory.");
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
