#include "work/message.h"

#include "base/json_bytes.h"
#include "base/json_text.h"

#define NAME_OF_MESSAGE(symbol, name) [symbol] = (name),
static const char *const message_names[] = {WORK_MESSAGES(NAME_OF_MESSAGE)};
#undef NAME_OF_MESSAGE

static bool put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static bool put_number(json_t *object, const char *key, uint64_t number)
{
    return number <= WORK_NUMBER_MAX && put(object, key, json_integer((json_int_t)number));
}

static bool put_signed(json_t *object, const char *key, int64_t number)
{
    return put(object, key, json_integer(number));
}

/* What is false, 0 or empty is left out. */
static bool put_flag(json_t *object, const char *key, bool is_set)
{
    return !is_set || put(object, key, json_true());
}

static bool put_if_any(json_t *object, const char *key, uint64_t number)
{
    return number == 0 || put_number(object, key, number);
}

static bool put_text(json_t *object, const char *key, const char *text)
{
    return put(object, key, json_string(text));
}

/* Appends it, if all of it `is_whole`, and releases it. */
static void write_json(json_t *object, bool is_whole, struct buffer *buffer)
{
    json_put_to(buffer, is_whole ? object : NULL, JSON_COMPACT);
    json_decref(object);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static json_t *assignment_json(const struct work_assignment *assignment)
{
    json_t *object = json_object();

    if (!put_number(object, "epoch", assignment->epoch) ||
        !put_number(object, "attempt", assignment->attempt) ||
        !put(object, "item", work_item_json(assignment->item))) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *id_json(const struct work_claim *claim)
{
    json_t *object = json_object();

    if (!put_text(object, "id", claim->id) || !put_number(object, "epoch", claim->epoch)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *claim_json(const struct work_claim *claim)
{
    json_t *object = id_json(claim);

    if (!put_flag(object, "ended", claim->is_ended) || !put_flag(object, "gone", claim->is_gone) ||
        !put_if_any(object, "progress_permille", claim->progress_permille) ||
        (claim->keys && !put(object, "keys", work_keys_json(claim->keys))) ||
        (claim->item && !put(object, "item", work_item_json(claim->item)))) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *list_json(const struct work_message *message)
{
    json_t *list = json_array();
    bool is_whole = list != NULL;

    for (size_t i = 0; is_whole && i < message->count; i++) {
        json_t *object = message->type == WORK_ASSIGN ? assignment_json(&message->assignments[i])
                                                      : id_json(&message->ids[i]);
        is_whole = json_array_append_new(list, object) == 0;
    }
    if (!is_whole) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *claims_json(const struct work_report *report)
{
    json_t *list = json_array();
    bool is_whole = list != NULL;

    for (size_t i = 0; is_whole && i < report->claim_count; i++) {
        is_whole = json_array_append_new(list, claim_json(&report->claims[i])) == 0;
    }
    if (!is_whole) {
        json_decref(list);
        return NULL;
    }
    return list;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static bool put_leaders(json_t *root, const struct work_message *message)
{
    return put_number(root, "leader", message->number.epoch) &&
           put_number(root, "number", message->number.count) &&
           put_if_any(root, "session", message->session) &&
           put_if_any(root, "ledger", message->ledger) &&
           (message->type == WORK_ASK || put(root, "items", list_json(message)));
}

static bool put_seen(json_t *root, const struct work_number *seen)
{
    json_t *object = json_object();

    if (!put_number(object, "leader", seen->epoch) || !put_number(object, "number", seen->count)) {
        json_decref(object);
        return false;
    }
    return put(root, "seen", object);
}

static bool put_report(json_t *root, const struct work_report *report)
{
    return put_text(root, "worker", report->worker) &&
           put_number(root, "session", report->session) &&
           put_if_any(root, "ledger", report->ledger) && put_seen(root, &report->seen) &&
           put_number(root, "slots", report->slots) &&
           put_if_any(root, "cpu_permille", report->cpu_permille) &&
           put_if_any(root, "gpus", report->gpus) &&
           put_if_any(root, "memory_mib", report->memory_mib) &&
           (!report->labels[0] || put(root, "labels", work_labels_json(report->labels))) &&
           put_flag(root, "leaving", report->is_leaving) &&
           put_flag(root, "reply", report->is_reply) && put(root, "claims", claims_json(report));
}

static bool put_result(json_t *object, const struct work_result *result)
{
    return put_text(object, "id", result->id) && put_number(object, "epoch", result->epoch) &&
           put(object, "success", json_boolean(result->is_success)) &&
           put_signed(object, "code", result->code) &&
           put_signed(object, "began_unix_ms", result->began_unix_ms) &&
           put_signed(object, "ended_unix_ms", result->ended_unix_ms) &&
           json_put_bytes(object, "output", result->output, result->output_bytes);
}

static bool put_done(json_t *root, const struct work_message *message)
{
    json_t *result = json_object();

    if (!put_text(root, "worker", message->worker) ||
        !put_number(root, "session", message->session) || !put_result(result, &message->result)) {
        json_decref(result);
        return false;
    }
    return put(root, "result", result);
}

void work_message_write(const struct work_message *message, struct buffer *buffer)
{
    json_t *root = json_object();
    bool is_whole = put_text(root, "type", message_names[message->type]);

    if (message->type == WORK_REPORT) {
        is_whole = is_whole && put_report(root, &message->report);
    } else if (message->type == WORK_DONE) {
        is_whole = is_whole && put_done(root, message);
    } else {
        is_whole = is_whole && put_leaders(root, message);
    }
    write_json(root, is_whole, buffer);
}

void work_result_write(const struct work_result *result, const char *worker, uint32_t attempt,
                       struct buffer *buffer)
{
    json_t *root = json_object();
    bool is_whole = put_result(root, result) && put_text(root, "worker", worker) &&
                    put_number(root, "attempt", attempt);

    write_json(root, is_whole, buffer);
}
