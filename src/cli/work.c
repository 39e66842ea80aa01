/* `baton work VERB`: what a person or a script asks of a pool. */
#include "cli/work.h"

#include "cli/interrupt.h"
#include "pool/client.h"
#include "pool/names.h"

#include <string.h>

enum { LOOK_MS = 100 };

static span timeout_of(const struct invocation *invocation)
{
    return options_duration(invocation->options, "timeout");
}

/* None of them, if one is not known: it may be misspelt. */
static int check_items(const struct invocation *invocation, struct work_link *link,
                       struct baton_error *reterr)
{
    json_t *entries = NULL;
    int code = work_entries(&entries, invocation, link, reterr);

    for (int i = 1; code == BATON_OK && i < invocation->argc; i++) {
        code = work_entry(entries, invocation->argv[i], link, reterr) ? BATON_OK : BATON_ENOENT;
    }
    json_decref(entries);
    return code;
}

static int cancel(const struct invocation *invocation, struct work_link *link)
{
    struct baton_error error = {0};
    int code = check_items(invocation, link, &error);

    for (int i = 1; code == BATON_OK && i < invocation->argc; i++) {
        code = pool_cancel(link->member, link->pool, invocation->argv[i], work_link_done, link,
                           &error);
        code = work_link_wait(link, code, timeout_of(invocation), &error);
    }
    return code ? command_fail(invocation, &error) : EXIT_OK;
}

static bool has_worker(const json_t *workers, const char *name)
{
    size_t index;
    json_t *worker;

    json_array_foreach(workers, index, worker)
    {
        const char *text = json_string_value(json_object_get(worker, "worker"));

        if (text && strcmp(text, name) == 0) {
            return true;
        }
    }
    return false;
}

/* It may be misspelt. A leader that is not ready may not have heard of all of them yet. */
static int check_worker(const struct invocation *invocation, struct work_link *link,
                        struct baton_error *reterr)
{
    const char *name = invocation->argv[1];
    instant limit = instant_add(clock_now(), timeout_of(invocation));
    bool is_known = false, is_ready = false;
    int code = pool_worker_check(link->pool, name, reterr);

    while (code == BATON_OK && !is_known && !is_ready && instant_before(clock_now(), limit)) {
        json_t *status = NULL;

        code = work_status(&status, link, timeout_of(invocation), reterr);
        is_ready = json_is_true(json_object_get(status, "ready"));
        is_known = has_worker(json_object_get(status, "workers"), name);
        json_decref(status);
        if (code == BATON_OK && !is_known && !is_ready) {
            code = work_link_pause(link, SPAN_MS(LOOK_MS), reterr);
        }
    }
    return code || is_known
               ? code
               : error_set(reterr, BATON_ENOENT,
                           "%s: the pool \"%s\" has no such worker; `baton work stats` lists them",
                           name, link->pool);
}

static int set_drained(const struct invocation *invocation, struct work_link *link, bool drains)
{
    struct baton_error error = {0};
    int code = check_worker(invocation, link, &error);

    code = code ? code
                : pool_drain(link->member, link->pool, invocation->argv[1], drains, work_link_done,
                             link, &error);
    code = work_link_wait(link, code, timeout_of(invocation), &error);
    return code ? command_fail(invocation, &error) : EXIT_OK;
}

static int drain(const struct invocation *invocation, struct work_link *link)
{
    return set_drained(invocation, link, true);
}

static int undrain(const struct invocation *invocation, struct work_link *link)
{
    return set_drained(invocation, link, false);
}

static const struct verb {
    const char *name, *arguments;
    int least, most; /* arguments after it; -1: any number */
    int (*run)(const struct invocation *invocation, struct work_link *link);
} verbs[] = {
    {"submit", "[--] CMD [ARG ...], or --file FILE", 0, -1, work_submit},
    {"ls", "no argument", 0, 0, work_list},
    {"show", "ID", 1, 1, work_show},
    {"logs", "ID", 1, 1, work_logs},
    {"watch", "no argument", 0, 0, work_watch},
    {"cancel", "ID ...", 1, -1, cancel},
    {"drain", "WORKER", 1, 1, drain},
    {"undrain", "WORKER", 1, 1, undrain},
    {"stats", "no argument", 0, 0, work_stats},
};

/* A flag after the first argument would be taken for another argument. */
static const char *misplaced_flag(const struct invocation *invocation)
{
    for (int i = 1; i < invocation->argc; i++) {
        if (strncmp(invocation->argv[i], "--", 2) == 0) {
            return invocation->argv[i];
        }
    }
    return NULL;
}

static const struct verb *find(const struct invocation *invocation, struct baton_error *reterr)
{
    const char *name = invocation->argv[0];
    const char *flag = strcmp(name, "submit") == 0 ? NULL : misplaced_flag(invocation);
    int given = invocation->argc - 1;

    if (flag) {
        (void)error_set(reterr, BATON_EINVAL, "%s: flags stand before the arguments of %s", flag,
                        name);
        return NULL;
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].name, name) == 0) {
            if (given >= verbs[i].least && (verbs[i].most < 0 || given <= verbs[i].most)) {
                return &verbs[i];
            }
            (void)error_set(reterr, BATON_EINVAL, "%s takes %s", name, verbs[i].arguments);
            return NULL;
        }
    }
    (void)error_set(reterr, BATON_EINVAL,
                    "'%s': must be submit, ls, show, logs, watch, cancel, drain, undrain or stats",
                    name);
    return NULL;
}

int work_main(const struct invocation *invocation)
{
    struct baton_error error = {0};
    struct work_link link;
    const struct verb *verb = find(invocation, &error);
    int result;

    if (!verb || work_link_open(&link, invocation->options, &error) != BATON_OK) {
        result = command_fail(invocation, &error);
    } else {
        result = verb->run(invocation, &link);
        work_link_close(&link);
    }
    return interrupt_signal() ? EXIT_SIGNAL + interrupt_signal() : result;
}
