/* `baton node`: a member that runs no CMD, until a signal ends it. */
#include "cli/act.h"
#include "cli/command.h"
#include "cli/participant.h"
#include "cli/record.h"
#include "cli/reload.h"
#include "cli/settings.h"
#include "options/program.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIGNALS = 4, DEVOURED_MAX = 256 << 20, MOUTHFUL = 1 << 16 };

struct node {
    uv_loop_t loop;
    uv_signal_t signals[SIGNALS];
    struct logger *logger;
    struct participant *participant;
    const struct invocation *invocation;
    struct act *act; /* for measurements only */
    unsigned slot;
    void *resident;
    int result;
};

static void on_closed(void *userdata)
{
    struct node *node = userdata;
    for (size_t i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&node->signals[i], NULL);
    }
}

/* Acts as a measured program does: sees that it leads, and stamps the instant. */
static void on_event(void *userdata, const struct baton_event *event)
{
    struct node *node = userdata;
    struct baton_error error;
    uint64_t epoch = 0;
    if (node->act && node->participant && event->type == BATON_EVENT_ACQUIRED &&
        participant_is_leader(node->participant, &epoch)) {
        act_stamp_acquired(node->act, node->slot, epoch, clock_now());
    } else if (node->act && event->type == BATON_EVENT_LOST) {
        act_stamp_lost(node->act, node->slot, (instant){event->at_ns});
    }
    if (participant_is_fatal(node->participant, event, &error)) {
        node->result = command_fail(node->invocation, &error);
        participant_close(node->participant, on_closed, node);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct node *node = handle->data;
    if (number == SIGHUP) {
        participant_reload(node->participant);
    } else {
        participant_close(node->participant, on_closed, node);
    }
}

/* For `bench failover --fault oom`: takes memory until the out-of-memory killer ends this process,
 * and stamps each moment at which it still lives. */
static void on_devour(uv_signal_t *handle, int number)
{
    struct node *node = handle->data;
    (void)number;

    for (size_t bytes = 0; node->act && bytes < DEVOURED_MAX; bytes += MOUTHFUL) {
        void *memory =
            mmap(NULL, MOUTHFUL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return;
        }
        memset(memory, 0x5a, MOUTHFUL);
        act_stamp_alive(node->act, node->slot, clock_now());
    }
}

static void listen_to_signals(struct node *node)
{
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2};
    for (size_t i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(&node->loop, &node->signals[i]);
        node->signals[i].data = node;
        if (numbers[i] != SIGUSR2) {
            (void)uv_signal_start(&node->signals[i], on_signal, numbers[i]);
        } else if (options_flag(node->invocation->options, "test-switches")) {
            (void)uv_signal_start(&node->signals[i], on_devour, numbers[i]);
        }
    }
}

static int prepare_measure(struct node *node, const struct options *options,
                           struct baton_error *reterr)
{
    const char *path = options_text(options, "act-file");
    size_t bytes = (size_t)options_number(options, "resident-mb") << 20;
    if (bytes) {
        node->resident = malloc(bytes);
        if (!node->resident) {
            return error_set(reterr, BATON_ENOMEM, "--resident-mb: out of memory");
        }
        memset(node->resident, 0x5a, bytes);
    }
    node->slot = (unsigned)options_number(options, "act-slot");
    return path ? act_open(&node->act, path, reterr) : 0;
}

/* Ends what an earlier `baton run` of this data directory left behind, before the first greeting:
 * after that the peers hold this node for alive, and another node may lead. */
static int end_earlier_command(int *ret_record, const struct options *options,
                               struct logger *logger, struct baton_error *reterr)
{
    char *data = NULL;
    int code = settings_make_data(&data, options, reterr);

    if (!code && data) {
        code = record_take(ret_record, data, logger, reterr);
    }
    free(data);
    return code;
}

static int run(struct node *node, const struct invocation *invocation, struct logger *logger,
               struct baton_error *reterr)
{
    struct participant_config config = {.loop = &node->loop,
                                        .options = invocation->options,
                                        .logger = logger,
                                        .has_endpoints = true,
                                        .on_event = on_event,
                                        .userdata = node};
    int record = -1, code = prepare_measure(node, invocation->options, reterr);
    code = code ? code : end_earlier_command(&record, invocation->options, logger, reterr);
    code = code ? code : participant_open(&node->participant, &config, reterr);
    if (record >= 0) { /* two that start at once would replace each other's control socket */
        (void)close(record);
    }
    if (!code) {
        listen_to_signals(node);
        participant_release_reload(node->participant);
        (void)uv_run(&node->loop, UV_RUN_DEFAULT);
        participant_free(node->participant);
    }
    return code;
}

int node_main(const struct invocation *invocation)
{
    struct node node = {.invocation = invocation};
    struct baton_error error = {0};
    struct logger *logger = node.logger = program_logger(invocation->options);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE becomes an ordinary error */
    reload_hold();
    int code = command_open_loop(&node.loop, &error);
    if (!code) {
        code = run(&node, invocation, logger, &error);
        (void)uv_loop_close(&node.loop);
    }
    int result = code ? command_fail(invocation, &error) : node.result;
    act_close(node.act);
    free(node.resident);
    logger_free(logger);
    return result;
}
