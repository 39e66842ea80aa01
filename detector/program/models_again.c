/* Asks again for models: for refused ones, because their archive may be mended, and for running
 * ones, because there may be a newer archive. No server announces either, so one timer waits for
 * the first time at which to ask.
 *
 * One request serves all subscriptions of an archive. */
#include "detector/program/models_int.h"

#include "detector/camera/pace.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { RETRY_MIN_MS = 5000, RETRY_MAX_MS = 300000, LOOKS_FACTOR_MAX = 32 };

static void await(struct models *models);

static bool is_due(instant at, instant now)
{
    return !instant_before(now, at);
}

static bool is_alike(const struct bound *a, const struct bound *b)
{
    return a->wanted.identity && b->wanted.identity &&
           strcmp(a->wanted.identity, b->wanted.identity) == 0;
}

static void look_at_all_like(const struct bound *one)
{
    for (struct bound *bound = one->models->bounds; bound; bound = bound->hh.next) {
        if (bound == one || is_alike(bound, one)) {
            models_look(bound);
        }
    }
}

static void on_again(uv_timer_t *timer)
{
    struct models *models = timer->data;
    instant now = clock_now();

    for (struct bound *bound = models->bounds; bound; bound = bound->hh.next) {
        if (is_due(bound->retry_at, now)) {
            models_ask(bound);
        } else if (is_due(bound->look_at, now)) {
            look_at_all_like(bound);
        }
    }
    await(models);
}

static void await(struct models *models)
{
    instant first = INSTANT_NEVER;
    int64_t left_ms;

    for (const struct bound *bound = models->bounds; bound; bound = bound->hh.next) {
        first = instant_min(first, instant_min(bound->retry_at, bound->look_at));
    }
    if (first.ns == INSTANT_NEVER.ns) {
        return;
    }
    if (!models->again) {
        models->again = calloc(1, sizeof(*models->again));
        if (!models->again) {
            return; /* the next list of subscriptions asks again */
        }
        (void)uv_timer_init(models->config.loop, models->again); /* it never fails */
        models->again->data = models;
    }
    left_ms = instant_since(first, clock_now()).ns / 1000000 + 1;
    (void)uv_timer_start(models->again, on_again, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
}

static instant later(unsigned fails, span min, span max)
{
    uint32_t random = 0;

    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK); /* else without spread */
    return instant_add(clock_now(), backoff_after(fails, min, max, random));
}

/* Plans another request for a refused model: its archive may be mended by then. */
void models_plan_retry(struct bound *bound)
{
    const struct models_config *config = &bound->models->config;
    int min_ms = config->retry_min_ms ? config->retry_min_ms : RETRY_MIN_MS;

    bound->refusals++;
    bound->retry_at = later(bound->refusals, SPAN_MS(min_ms), SPAN_MS(RETRY_MAX_MS));
    await(bound->models);
}

/* ---- Newer archives of running models ------------------------------------------------------- */

/* Each refusal makes the pause longer: a signature that is too old stays too old. */
void models_plan_look(struct bound *bound)
{
    const struct models_config *config = &bound->models->config;
    const span pause = SPAN_MS((int64_t)config->recheck_ms);

    bound->look_at = INSTANT_NEVER;
    if (config->recheck_ms > 0 && config->source.look) {
        bound->look_at = later(bound->look_fails + 1, pause, SPAN_NS(pause.ns * LOOKS_FACTOR_MAX));
        await(bound->models);
    }
}

void models_set_recheck(struct models *models, int recheck_ms)
{
    models->config.recheck_ms = recheck_ms;
    for (struct bound *bound = models->bounds; bound; bound = bound->hh.next) {
        if (bound->is_met && !bound->coming) {
            models_plan_look(bound);
        }
    }
}

static bool is_told(const struct bound *bound)
{
    for (const struct bound *one = bound->models->bounds; one; one = one->hh.next) {
        if (one->look_fails > 0 && (one == bound || is_alike(one, bound))) {
            return true;
        }
    }
    return false;
}

/* Logs one line for all subscriptions of the archive until a request succeeds. The models that run
 * go on. */
static void note_failure(struct bound *bound, const struct baton_error *error)
{
    if (!is_told(bound)) {
        log_notice(bound->models->config.logger, "model-recheck-failed",
                   LOG_STR("identifier", bound->identifier),
                   LOG_I64("model-id", bound->wanted.model_id), LOG_STR("error", error->message));
    }
    bound->look_fails++;
    models_plan_look(bound);
}

/* A second look is allowed only while the first has brought nothing: it is the same one with a
 * fresher URL. */
static bool may_look(const struct bound *bound)
{
    return bound->models->config.source.look && bound->is_met &&
           (!bound->coming || (bound->coming->is_look && !bound->coming->shared));
}

void models_look(struct bound *bound)
{
    const struct models_source *source = &bound->models->config.source;
    struct work *before = bound->coming;
    struct baton_error error = {0};
    struct work *work;
    int code;

    bound->look_at = INSTANT_NEVER;
    if (!may_look(bound)) {
        return;
    }
    work = work_new(bound);
    if (!work) {
        models_plan_look(bound);
        return;
    }
    work->is_look = true;
    code = source->look(source->userdata, &work->ticket, bound->wanted.url, bound->running->ticket,
                        work, &error);
    if (code) {
        work_free(work);
    } else {
        bound->coming = work;
        work_free(before); /* afterwards, so that a running request continues */
    }
    if (code && code != BATON_ENOTSUP && !before) {
        note_failure(bound, &error);
    }
}

static void end_look(struct bound *bound)
{
    work_free(bound->coming);
    bound->coming = NULL;
}

void models_unchanged(void *asker)
{
    struct bound *bound = ((struct work *)asker)->bound;

    end_look(bound);
    bound->look_fails = 0;
    models_plan_look(bound);
}

void models_look_failed(void *asker, bool is_bad, const struct baton_error *error)
{
    struct bound *bound = ((struct work *)asker)->bound;

    if (is_bad) {
        models_refuse(bound, error);
    } else {
        end_look(bound);
        note_failure(bound, error);
    }
}
