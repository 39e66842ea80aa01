/* `baton work submit`: gives items to the pool; with --wait until they have ended. */
#include "cli/work.h"

#include "cli/print.h"
#include "pool/client.h"
#include "pool/submit.h"
#include "pool/wait.h"
#include "work/placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEADER_MS = 2000 /* in which a leader replies */ };

struct bag {
    struct work_link *link;
    struct pool_wait *wait;
    bool is_json, shows_output, was_there;
    char name[POOL_SUBMISSION_MAX + 1]; /* of the submission; "": there is none */
    char **ids;                         /* of the items that are stored */
    size_t count, ended, failed;
    int exit_code; /* of the last that failed */
    instant began;
};

/* ---- The end --------------------------------------------------------------------------------- */

static void show_progress(const struct bag *bag)
{
    double share = (double)bag->ended / (double)bag->count;
    double seconds = (double)instant_since(clock_now(), bag->began).ns / 1e9;
    double rate = seconds > 0 ? (double)bag->ended / seconds : 0;
    char text[128];

    (void)snprintf(text, sizeof(text), "%zu of %zu, %.1f a second, %.0f s left", bag->ended,
                   bag->count, rate, rate > 0 ? (double)(bag->count - bag->ended) / rate : 0);
    print_progress(stderr, bag->ended < bag->count ? text : NULL, share);
}

static void print_end(const struct bag *bag, const struct pool_end *end)
{
    if (bag->is_json) {
        json_t *line = json_pack("{s:s, s:s}", "id", end->id, "state", work_state_name(end->state));

        if (end->state != WORK_CANCELLED) {
            (void)json_object_set_new(line, "code", json_integer(end->code));
        }
        print_json(stdout, line);
        json_decref(line);
    } else if (bag->shows_output && end->result) {
        work_print_output(end->result);
    } else if (end->state != WORK_COMPLETED) { /* on standard output only what CMD wrote */
        (void)fprintf(bag->shows_output ? stderr : stdout, "%s %s\n", end->id,
                      work_state_name(end->state));
    }
}

static void on_end(void *userdata, const struct pool_end *end)
{
    struct bag *bag = userdata;

    bag->ended++;
    if (end->state != WORK_COMPLETED) {
        bag->failed++;
        bag->exit_code = end->code > 0 ? end->code : EXIT_REFUSED;
    }
    print_progress(stderr, NULL, 0);
    print_end(bag, end);
    show_progress(bag);
    if (fflush(stdout) != 0 || bag->ended == bag->count) { /* or the reader of the pipe has ended */
        work_link_done(bag->link, BATON_OK, NULL);
    }
}

/* The pool has the items, whether this command waits or not. */
static int stop_waiting(const struct invocation *invocation, const struct bag *bag,
                        struct baton_error *error)
{
    (void)error_wrap(error, "submission \"%s\": %zu of %zu items have not ended, and go on",
                     bag->name, bag->count - bag->ended, bag->count);
    return command_fail(invocation, error);
}

/* The workers as the leader's placement sees them, without what they run. */
static struct placement_node *nodes_of(const json_t *workers)
{
    struct placement_node *nodes = calloc(json_array_size(workers) + 1, sizeof(*nodes));
    const json_t *worker;
    size_t index;

    for (index = 0; nodes && (worker = json_array_get(workers, index)); index++) {
        nodes[index] = (struct placement_node){
            .name = json_string_value(json_object_get(worker, "worker")),
            .slots = (uint32_t)json_integer_value(json_object_get(worker, "slots")),
            .memory_mib = (uint64_t)json_integer_value(json_object_get(worker, "memory_mib")),
            .gpus = (uint32_t)json_integer_value(json_object_get(worker, "gpus")),
            .labels = json_string_value(json_object_get(worker, "labels")),
            .is_healthy = json_is_true(json_object_get(worker, "online")),
            .is_draining = json_is_true(json_object_get(worker, "draining")) ||
                           json_is_true(json_object_get(worker, "leaving"))};
    }
    return nodes;
}

/* What is wrong with these does not pass when other items end. */
static bool waits_for_another_worker(enum placement_reason reason)
{
    return reason == PLACEMENT_NO_NODES || reason == PLACEMENT_NO_CAPABLE_NODE ||
           reason == PLACEMENT_ITEM_TOO_LARGE || reason == PLACEMENT_GROUP_TOO_LARGE;
}

static void tell_reason(const struct invocation *invocation, const struct bag *bag,
                        const struct placement_item *item, enum placement_reason reason,
                        size_t count)
{
    struct baton_error error;
    char labels[96] = "", gpus[32] = "", memory[48] = "";

    if (item->needs[0]) {
        (void)snprintf(labels, sizeof(labels), ", labels \"%.72s\"", item->needs);
    }
    if (item->gpus > 0) {
        (void)snprintf(gpus, sizeof(gpus), ", GPUs %" PRIu32, item->gpus);
    }
    if (item->memory_mib > 0) {
        (void)snprintf(memory, sizeof(memory), ", memory %" PRIu64 " MiB", item->memory_mib);
    }
    (void)error_set(&error, BATON_ENOENT,
                    "%zu of %zu items wait for another worker: %.40s (slots %" PRIu32
                    "%s%s%s): %s; start one, or cancel; `baton work stats` shows those there are",
                    count, bag->count, item->id, item->weight, labels, gpus, memory,
                    placement_reason_text(reason));
    command_tell(invocation, &error);
}

/* Those that no worker of today could have, however long they wait. */
static void tell_if_none_fits(const struct invocation *invocation, const struct bag *bag,
                              const json_t *items, const json_t *workers)
{
    struct work_item **read = calloc(bag->count + 1, sizeof(struct work_item *));
    struct placement_item *asked = calloc(bag->count + 1, sizeof(*asked));
    struct placement_node *nodes = nodes_of(workers);
    struct placement_problem problem = {
        .nodes = nodes, .node_count = json_array_size(workers), .items = asked};
    struct placement_answer answer = {0};
    size_t first = 0, count = 0, read_count = 0;

    for (size_t i = 0; read && asked && i < bag->count; i++) {
        struct work_item *item;
        if (work_item_read(&item, json_array_get(items, i), bag->ids[i], NULL) == BATON_OK) {
            read[read_count++] = item;
            asked[problem.item_count++] = (struct placement_item){.id = item->id,
                                                                  .weight = item->weight,
                                                                  .needs = item->needs,
                                                                  .memory_mib = item->memory_mib,
                                                                  .gpus = item->gpus,
                                                                  .together = item->together,
                                                                  .node = PLACEMENT_NOWHERE};
        }
    }
    if (nodes && placement_solve(&problem, &answer) == BATON_OK) {
        for (size_t i = problem.item_count; i-- > 0;) {
            bool waits = answer.places[i].node == PLACEMENT_NOWHERE &&
                         waits_for_another_worker(answer.places[i].reason);
            first = waits ? i : first;
            count += waits;
        }
    }
    if (count > 0) {
        tell_reason(invocation, bag, &asked[first], answer.places[first].reason, count);
    }
    placement_answer_fini(&answer);
    for (size_t i = 0; i < read_count; i++) {
        work_item_unref(read[i]);
    }
    free((void *)read);
    free(asked);
    free(nodes);
}

/* Without a leader, or a worker that fits, the wait may have no end, and nothing else says why. */
static int tell_if_nobody_takes_it(const struct invocation *invocation, const struct bag *bag,
                                   const json_t *items, span within, struct baton_error *reterr)
{
    json_t *status = NULL;
    int code = work_status(&status, bag->link, within, reterr);

    if (code == BATON_ETIMEDOUT) {
        command_tell(invocation, reterr);
    } else if (status && !bag->was_there) { /* what was there may have ended */
        tell_if_none_fits(invocation, bag, items, json_object_get(status, "workers"));
    }
    json_decref(status);
    return code == BATON_ECANCELED ? code : BATON_OK;
}

static int await(const struct invocation *invocation, struct bag *bag, const json_t *items)
{
    struct baton_error error = {0};
    span limit = options_is_set(invocation->options, "timeout")
                     ? options_duration(invocation->options, "timeout")
                     : SPAN_NS(0);
    span within = SPAN_MS(LEADER_MS);
    int code;

    bag->began = clock_now();
    bag->shows_output = bag->count == 1;
    if (limit.ns > 0 && limit.ns / 2 < within.ns) {
        within = SPAN_NS(limit.ns / 2);
    }
    code = tell_if_nobody_takes_it(invocation, bag, items, within, &error);
    if (code != BATON_OK) {
        return stop_waiting(invocation, bag, &error);
    }
    if (limit.ns > 0) {
        int64_t left = limit.ns - instant_since(clock_now(), bag->began).ns;
        limit = left > 0 ? SPAN_NS(left) : SPAN_MS(1); /* 0 would have no end */
    }
    code = pool_wait_begin(&bag->wait, bag->link->member, bag->link->pool,
                           (const char *const *)bag->ids, bag->count, on_end, bag, &error);
    code = work_link_wait(bag->link, code, limit, &error);
    print_progress(stderr, NULL, 0);
    pool_wait_stop(bag->wait);
    if (code == BATON_ETIMEDOUT) {
        (void)error_set(&error, code, "--timeout %s: the time is over",
                        options_text(invocation->options, "timeout"));
    }
    if (code != BATON_OK) {
        return stop_waiting(invocation, bag, &error);
    }
    return bag->failed == 0 ? EXIT_OK : bag->count == 1 ? bag->exit_code : EXIT_REFUSED;
}

/* ---- The submission -------------------------------------------------------------------------- */

static void on_submitted(void *userdata, int code, const struct pool_submission *what,
                         const struct baton_error *error)
{
    struct bag *bag = userdata;

    (void)snprintf(bag->name, sizeof(bag->name), "%s", what->name);
    bag->was_there = what->was_there;
    bag->ids = calloc(what->count + 1, sizeof(*bag->ids));
    for (size_t i = 0; bag->ids && i < what->count; i++) {
        bag->ids[bag->count] = strdup(what->ids[i]);
        bag->count += bag->ids[bag->count] ? 1 : 0;
    }
    work_link_done(bag->link, code, error);
}

static void print_ids(const struct bag *bag)
{
    json_t *ids = json_array();

    for (size_t i = 0; i < bag->count; i++) {
        if (bag->is_json) {
            (void)json_array_append_new(ids, json_string(bag->ids[i]));
        } else {
            (void)puts(bag->ids[i]);
        }
    }
    if (bag->is_json) {
        print_json(stdout, ids);
    }
    json_decref(ids);
}

/* An id is a name, too: so the pool takes the same item once, and refuses another one. */
static const char *name_of(const struct options *options)
{
    const char *name = options_text(options, "name"), *id = options_text(options, "id");

    return name || !id || strlen(id) > POOL_SUBMISSION_MAX ? name : id;
}

static int fail(const struct invocation *invocation, const struct bag *bag, size_t count,
                struct baton_error *error)
{
    const char *id = options_text(invocation->options, "id");

    if (error->code == BATON_EEXIST && id && strcmp(bag->name, id) == 0) {
        (void)error_set(error, BATON_EEXIST,
                        "--id %s: the pool has an item of this id that was submitted with another "
                        "command or other flags; give this one another id",
                        id);
    } else if (bag->count > 0) {
        (void)error_wrap(error, "submission \"%s\": the first %zu of %zu items are stored, and run",
                         bag->name, bag->count, count);
    }
    return command_fail(invocation, error);
}

/* An item that the same submission has had before, if all of them have ended: one that was not
 * completed, if there is one. */
struct earlier {
    struct bag *bag;
    const char *id; /* NULL: one has not ended, or is not known */
    enum work_state state;
};

static void on_ledger(void *userdata, int code, const struct ledger *ledger,
                      const struct baton_error *error)
{
    struct earlier *earlier = userdata;
    struct bag *bag = earlier->bag;

    for (size_t i = 0; ledger && i < bag->count; i++) {
        const struct ledger_entry *entry = ledger_find(ledger, bag->ids[i]);

        if (!entry || !work_state_is_final(entry->state)) {
            earlier->id = NULL;
            break;
        }
        if (i == 0 || earlier->state == WORK_COMPLETED) {
            earlier->id = bag->ids[i];
            earlier->state = entry->state;
        }
    }
    work_link_done(bag->link, code, error);
}

/* The same submitted again starts nothing: that is the way to ask for the outcome, and no surprise
 * if somebody wants it to run again. */
static int tell_if_ended(const struct invocation *invocation, struct bag *bag)
{
    struct earlier earlier = {.bag = bag};
    struct work_link *link = bag->link;
    struct baton_error error;
    int code = pool_list(link->member, link->pool, on_ledger, &earlier, &error);

    code = work_link_wait(link, code, options_duration(invocation->options, "timeout"), &error);
    if (code != BATON_OK || !earlier.id) {
        return EXIT_OK;
    }
    (void)error_set(&error, BATON_EEXIST,
                    "%s: was submitted before and is %s: it is not started again under this name, "
                    "as long as the pool remembers it (--keep of its workers)",
                    earlier.id, work_state_name(earlier.state));
    command_tell(invocation, &error);
    return earlier.state == WORK_COMPLETED ? EXIT_OK : EXIT_REFUSED;
}

static int submit(const struct invocation *invocation, struct bag *bag, const json_t *items)
{
    const struct options *options = invocation->options;
    struct work_link *link = bag->link;
    struct baton_error error = {0};
    int result = EXIT_OK;
    int code =
        pool_submit(link->member, link->pool, name_of(options), items, on_submitted, bag, &error);

    code = work_link_wait(link, code, options_duration(options, "timeout"), &error);
    if (code != BATON_OK) {
        return fail(invocation, bag, json_array_size(items), &error);
    }
    if (bag->was_there) {
        result = tell_if_ended(invocation, bag);
    }
    if (options_flag(options, "wait")) {
        return await(invocation, bag, items);
    }
    if (result == EXIT_OK) {
        print_ids(bag);
    }
    return result;
}

int work_submit(const struct invocation *invocation, struct work_link *link)
{
    struct baton_error error = {0};
    struct bag bag = {.link = link, .is_json = options_flag(invocation->options, "json")};
    json_t *items = work_items(invocation, &error);
    int result = items ? submit(invocation, &bag, items) : command_fail(invocation, &error);

    for (size_t i = 0; i < bag.count; i++) {
        free(bag.ids[i]);
    }
    free((void *)bag.ids);
    json_decref(items);
    return result;
}
