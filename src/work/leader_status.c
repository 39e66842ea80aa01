#include "work/leader_int.h"

enum {
    PROGRESS_MAX = 100
}; /* items of which a status tells: it must stay small enough for a message */

/* The time below which `percent` of the completed attempts were, as far as classes tell. */
static double time_at(const struct work_leader *leader, double percent)
{
    double wanted = (double)leader->times_count * percent / 100;
    double below = 0, ms = 1;

    for (size_t i = 0; i < LEADER_TIMES; i++) {
        below += (double)leader->times[i];
        if (below >= wanted) {
            break;
        }
        ms *= LEADER_TIMES_GROW;
    }
    return leader->times_count > 0 ? ms : 0;
}

static json_t *counters_json(const struct work_counters *counters)
{
    json_t *object = json_object();

#define WORK_COUNTER(name, text)                                                                   \
    (void)json_object_set_new(object, #name, json_integer((json_int_t)counters->name));
    WORK_COUNTERS(WORK_COUNTER)
#undef WORK_COUNTER
    return object;
}

static json_t *states_json(const struct ledger *ledger)
{
    json_t *object = json_object();

    for (int state = 0; state < WORK_STATE_COUNT; state++) {
        (void)json_object_set_new(
            object, work_state_name((enum work_state)state),
            json_integer((json_int_t)ledger_count(ledger, (enum work_state)state)));
    }
    return object;
}

static json_t *worker_json(const struct work_leader *leader, const struct leader_known *known,
                           instant now)
{
    const struct ledger_place *place =
        ledger_place_find(leader->ledger, known->name, known->session);
    json_int_t silent_ms =
        known->is_heard ? (json_int_t)(instant_since(now, known->heard).ns / 1000000) : -1;

    return json_pack("{s:s, s:I, s:i, s:I, s:i, s:i, s:I, s:s, s:b, s:b, s:b, s:I}", "worker",
                     known->name, "session", (json_int_t)known->session, "slots", (int)known->slots,
                     "items", (json_int_t)(place ? ledger_place_count(place) : 0), "cpu_permille",
                     (int)known->cpu_permille, "gpus", (int)known->gpus, "memory_mib",
                     (json_int_t)known->memory_mib, "labels", known->labels, "online",
                     known->is_heard && !known->is_silent && !known->is_over, "draining",
                     known->is_draining, "leaving", known->is_leaving, "silent_ms", silent_ms);
}

/* Why idle items have no place: so many of each reason. */
static json_t *waiting_json(const struct ledger *ledger)
{
    json_t *object = json_object();

    for (const struct ledger_entry *entry = ledger_idle(ledger); entry; entry = entry->next) {
        const char *reason = entry->item ? placement_reason_text(entry->reason) : "not submitted";
        json_int_t count = json_integer_value(json_object_get(object, reason));

        (void)json_object_set_new(object, reason, json_integer(count + 1));
    }
    return object;
}

/* Of the running items that say something, in thousandths. */
static json_t *progress_json(const struct ledger *ledger)
{
    json_t *object = json_object();

    for (const struct ledger_entry *entry = ledger_next(ledger, NULL);
         entry && json_object_size(object) < PROGRESS_MAX; entry = ledger_next(ledger, entry)) {
        if (entry->state == WORK_PROCESSING && entry->progress_permille > 0) {
            (void)json_object_set_new(object, entry->id, json_integer(entry->progress_permille));
        }
    }
    return object;
}

json_t *work_leader_status(const struct work_leader *leader, instant now)
{
    json_t *workers = json_array();
    const struct leader_known *known;
    double mean = leader->times_count > 0 ? leader->times_sum_ms / (double)leader->times_count : 0;

    for (known = leader->known; known; known = known->hh.next) {
        if (known->session != 0 || known->is_draining) {
            (void)json_array_append_new(workers, worker_json(leader, known, now));
        }
    }
    return json_pack("{s:I, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:{s:f, s:f, s:f, s:f, s:I}}",
                     "epoch", (json_int_t)leader->options.epoch, "ready", leader->is_ready,
                     "rebuilt", leader->is_rebuilt, "workers", workers, "items",
                     states_json(leader->ledger), "waiting", waiting_json(leader->ledger),
                     "progress_permille", progress_json(leader->ledger), "counters",
                     counters_json(&leader->counters), "processing_ms", "mean", mean, "p50",
                     time_at(leader, 50), "p99", time_at(leader, 99), "sum", leader->times_sum_ms,
                     "count", (json_int_t)leader->times_count);
}
