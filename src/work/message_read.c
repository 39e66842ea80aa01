#include "work/message.h"

#include "base/json_bytes.h"
#include "base/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 10,
    PATH_MAX_BYTES = 48, /* "items[65535].item" */
};

static const struct {
    const char *name;
    enum work_message_type type;
} message_types[] = {
#define NAME_OF_MESSAGE(symbol, name) {(name), symbol},
    WORK_MESSAGES(NAME_OF_MESSAGE)
#undef NAME_OF_MESSAGE
};

/* ---- Fields ---------------------------------------------------------------------------------- */

static int out_of_memory(struct baton_error *reterr)
{
    return error_set(reterr, BATON_ENOMEM, "out of memory while reading a message");
}

/* A number that names something: at least 1. */
static int read_number(const json_t *object, const char *path, const char *key, uint64_t *ret,
                       struct baton_error *reterr)
{
    int64_t number = 0;
    int code = json_read_integer(object, path, key, 1, INT64_MAX, NULL, &number, reterr);

    if (code == BATON_OK) {
        *ret = (uint64_t)number;
    }
    return code;
}

/* Absent: 0. */
static int read_amount(const json_t *object, const char *path, const char *key, int64_t most,
                       uint64_t *ret, struct baton_error *reterr)
{
    int64_t number = 0;
    bool is_given;
    int code = json_read_integer(object, path, key, 0, most, &is_given, &number, reterr);

    if (code == BATON_OK) {
        *ret = (uint64_t)number;
    }
    return code;
}

static int read_small(const json_t *object, const char *path, const char *key, int64_t most,
                      uint32_t *ret, struct baton_error *reterr)
{
    uint64_t number = 0;
    int code = read_amount(object, path, key, most, &number, reterr);

    if (code == BATON_OK) {
        *ret = (uint32_t)number;
    }
    return code;
}

static int read_id(const json_t *object, const char *path, const char *key, size_t bytes_max,
                   const char **ret, struct baton_error *reterr)
{
    const char *id = NULL;
    int code = json_read_text(object, path, key, true, bytes_max - 1, &id, reterr);

    if (code == BATON_OK && !work_id_is_valid(id)) {
        return error_set(reterr, BATON_EPROTO,
                         "%s%s is \"%s\": must be letters, digits and -_.:/{};@+=, and no slash "
                         "at its ends or beside another",
                         path, key, id);
    }
    if (code == BATON_OK) {
        *ret = id;
    }
    return code;
}

static int read_worker(const json_t *object, char ret[static BATON_NAME_MAX],
                       struct baton_error *reterr)
{
    const char *worker;
    int code = read_id(object, "", "worker", BATON_NAME_MAX, &worker, reterr);

    if (code == BATON_OK) {
        (void)snprintf(ret, BATON_NAME_MAX, "%s", worker);
    }
    return code;
}

static int read_item(const json_t *object, const char *path, bool is_required,
                     struct work_item **ret, struct baton_error *reterr)
{
    json_t *value;
    int code = json_read_field(object, path, "item", is_required, JSON_OBJECT, &value, reterr);

    if (code != BATON_OK || !value) {
        return code;
    }
    code = work_item_read(ret, value, NULL, reterr);
    if (code != BATON_OK) {
        (void)error_wrap(reterr, "%sitem", path);
    }
    if (code == BATON_EINVAL && reterr) {
        reterr->code = BATON_EPROTO; /* it is the peer who is wrong */
    }
    return code == BATON_EINVAL ? BATON_EPROTO : code;
}

/* The objects of a list: their number, and room for what is read of them. */
static int read_list(const json_t *object, const char *key, size_t size, json_t **ret_list,
                     void **ret, struct baton_error *reterr)
{
    int code = json_read_field(object, "", key, true, JSON_ARRAY, ret_list, reterr);
    size_t count;

    if (code != BATON_OK) {
        return code;
    }
    count = json_array_size(*ret_list);
    if (count > WORK_CLAIMS_MAX) {
        return error_set(reterr, BATON_EPROTO, "%s has %zu: at most %d are read", key, count,
                         WORK_CLAIMS_MAX);
    }
    *ret = calloc(count + 1, size);
    return *ret ? BATON_OK : out_of_memory(reterr);
}

static int element_of(const json_t *list, const char *key, size_t at, const json_t **ret,
                      char path[static PATH_MAX_BYTES], struct baton_error *reterr)
{
    *ret = json_array_get(list, at);
    if (!json_is_object(*ret)) {
        return error_set(reterr, BATON_EPROTO, "%s[%zu] is %s: must be an object", key, at,
                         json_type_name(json_typeof(*ret)));
    }
    (void)snprintf(path, PATH_MAX_BYTES, "%s[%zu].", key, at);
    return BATON_OK;
}

/* ---- The leader's messages ------------------------------------------------------------------- */

static int read_assignments(struct work_message *message, const json_t *root,
                            struct baton_error *reterr)
{
    json_t *list;
    int code = read_list(root, "items", sizeof(*message->assignments), &list,
                         (void **)&message->assignments, reterr);

    for (size_t i = 0; code == BATON_OK && i < json_array_size(list); i++) {
        struct work_assignment *assignment = &message->assignments[i];
        char path[PATH_MAX_BYTES];
        const json_t *object;
        uint64_t attempt = 0;

        message->count = i + 1;
        if ((code = element_of(list, "items", i, &object, path, reterr)) == BATON_OK &&
            (code = read_number(object, path, "epoch", &assignment->epoch, reterr)) == BATON_OK &&
            (code = read_number(object, path, "attempt", &attempt, reterr)) == BATON_OK &&
            (code = read_item(object, path, true, &assignment->item, reterr)) == BATON_OK &&
            attempt > UINT32_MAX) {
            code = error_set(reterr, BATON_EPROTO, "%sattempt is %llu: must be 1 to %u", path,
                             (unsigned long long)attempt, UINT32_MAX);
        }
        assignment->attempt = (uint32_t)attempt;
    }
    return code;
}

static int read_claimed_id(struct work_claim *claim, const json_t *object, const char *path,
                           struct baton_error *reterr)
{
    const char *id;
    int code = read_id(object, path, "id", WORK_ID_MAX, &id, reterr);

    if (code != BATON_OK) {
        return code;
    }
    claim->id = strdup(id);
    return claim->id ? read_number(object, path, "epoch", &claim->epoch, reterr)
                     : out_of_memory(reterr);
}

static int read_ids(struct work_message *message, const json_t *root, struct baton_error *reterr)
{
    json_t *list;
    int code =
        read_list(root, "items", sizeof(*message->ids), &list, (void **)&message->ids, reterr);

    for (size_t i = 0; code == BATON_OK && i < json_array_size(list); i++) {
        char path[PATH_MAX_BYTES];
        const json_t *object;

        message->count = i + 1;
        code = element_of(list, "items", i, &object, path, reterr);
        if (code == BATON_OK) {
            code = read_claimed_id(&message->ids[i], object, path, reterr);
        }
    }
    return code;
}

static int read_leaders(struct work_message *message, const json_t *root,
                        struct baton_error *reterr)
{
    bool is_for_all = message->type == WORK_ASK;
    int code;

    (void)((code = read_number(root, "", "leader", &message->number.epoch, reterr)) != BATON_OK ||
           (code = read_number(root, "", "number", &message->number.count, reterr)) != BATON_OK ||
           (code = is_for_all
                       ? read_amount(root, "", "session", INT64_MAX, &message->session, reterr)
                       : read_number(root, "", "session", &message->session, reterr)) != BATON_OK ||
           (code = read_amount(root, "", "ledger", INT64_MAX, &message->ledger, reterr)) !=
               BATON_OK);
    if (code != BATON_OK || is_for_all) {
        return code;
    }
    return message->type == WORK_ASSIGN ? read_assignments(message, root, reterr)
                                        : read_ids(message, root, reterr);
}

/* ---- Reports --------------------------------------------------------------------------------- */

static int read_claim(struct work_claim *claim, const json_t *object, const char *path,
                      struct baton_error *reterr)
{
    uint64_t progress = 0;
    int code;

    (void)((code = read_claimed_id(claim, object, path, reterr)) != BATON_OK ||
           (code = json_read_flag(object, path, "ended", &claim->is_ended, reterr)) != BATON_OK ||
           (code = json_read_flag(object, path, "gone", &claim->is_gone, reterr)) != BATON_OK ||
           (code = read_amount(object, path, "progress_permille", WORK_PERMILLE_MAX, &progress,
                               reterr)) != BATON_OK ||
           (code = work_keys_read(object, path, "keys", &claim->keys, reterr)) != BATON_OK ||
           (code = read_item(object, path, false, &claim->item, reterr)) != BATON_OK);
    claim->progress_permille = (uint16_t)progress;
    if (code == BATON_OK && claim->item && strcmp(claim->item->id, claim->id) != 0) {
        return error_set(reterr, BATON_EPROTO, "%sitem.id is \"%s\": must be \"%s\"", path,
                         claim->item->id, claim->id);
    }
    return code;
}

static int read_claims(struct work_report *report, const json_t *root, struct baton_error *reterr)
{
    json_t *list;
    int code =
        read_list(root, "claims", sizeof(*report->claims), &list, (void **)&report->claims, reterr);

    for (size_t i = 0; code == BATON_OK && i < json_array_size(list); i++) {
        char path[PATH_MAX_BYTES];
        const json_t *object;

        report->claim_count = i + 1;
        code = element_of(list, "claims", i, &object, path, reterr);
        if (code == BATON_OK) {
            code = read_claim(&report->claims[i], object, path, reterr);
        }
    }
    return code;
}

static int read_seen(struct work_number *ret, const json_t *root, struct baton_error *reterr)
{
    json_t *seen;
    int code = json_read_field(root, "", "seen", false, JSON_OBJECT, &seen, reterr);

    if (code != BATON_OK || !seen) {
        return code;
    }
    code = read_amount(seen, "seen.", "leader", INT64_MAX, &ret->epoch, reterr);
    return code != BATON_OK ? code
                            : read_amount(seen, "seen.", "number", INT64_MAX, &ret->count, reterr);
}

static int read_resources(struct work_report *report, const json_t *root,
                          struct baton_error *reterr)
{
    int code;

    (void)((code = read_small(root, "", "slots", WORK_WEIGHT_MAX, &report->slots, reterr)) !=
               BATON_OK ||
           (code = read_small(root, "", "cpu_permille", WORK_PERMILLE_MAX, &report->cpu_permille,
                              reterr)) != BATON_OK ||
           (code = read_small(root, "", "gpus", WORK_GPUS_MAX, &report->gpus, reterr)) !=
               BATON_OK ||
           (code = read_amount(root, "", "memory_mib", WORK_MEMORY_MAX_MIB, &report->memory_mib,
                               reterr)) != BATON_OK ||
           (code = work_labels_read(root, "", "labels", report->labels, reterr)) != BATON_OK);
    return code;
}

static int read_report(struct work_report *report, const json_t *root, struct baton_error *reterr)
{
    int code;

    (void)((code = read_worker(root, report->worker, reterr)) != BATON_OK ||
           (code = read_number(root, "", "session", &report->session, reterr)) != BATON_OK ||
           (code = read_amount(root, "", "ledger", INT64_MAX, &report->ledger, reterr)) !=
               BATON_OK ||
           (code = read_seen(&report->seen, root, reterr)) != BATON_OK ||
           (code = read_resources(report, root, reterr)) != BATON_OK ||
           (code = json_read_flag(root, "", "leaving", &report->is_leaving, reterr)) != BATON_OK ||
           (code = json_read_flag(root, "", "reply", &report->is_reply, reterr)) != BATON_OK ||
           (code = read_claims(report, root, reterr)) != BATON_OK);
    return code;
}

/* ---- Results --------------------------------------------------------------------------------- */

static int read_result(struct work_result *result, const json_t *object, const char *path,
                       struct baton_error *reterr)
{
    const char *id;
    int64_t number = 0;
    int code;

    (void)((code = read_id(object, path, "id", WORK_ID_MAX, &id, reterr)) != BATON_OK ||
           (code = read_number(object, path, "epoch", &result->epoch, reterr)) != BATON_OK ||
           (code = json_read_boolean(object, path, "success", &result->is_success, reterr)) !=
               BATON_OK ||
           (code = json_read_integer(object, path, "code", INT32_MIN, INT32_MAX, NULL, &number,
                                     reterr)) != BATON_OK ||
           (code = json_read_integer(object, path, "began_unix_ms", INT64_MIN, INT64_MAX, NULL,
                                     &result->began_unix_ms, reterr)) != BATON_OK ||
           (code = json_read_integer(object, path, "ended_unix_ms", INT64_MIN, INT64_MAX, NULL,
                                     &result->ended_unix_ms, reterr)) != BATON_OK ||
           (code = json_read_bytes(object, path, "output", WORK_OUTPUT_MAX, &result->output,
                                   &result->output_bytes, reterr)) != BATON_OK);
    result->code = (int32_t)number;
    if (code == BATON_OK && !(result->id = strdup(id))) {
        return out_of_memory(reterr);
    }
    return code;
}

static int read_done(struct work_message *message, const json_t *root, struct baton_error *reterr)
{
    json_t *result;
    int code;

    (void)((code = read_worker(root, message->worker, reterr)) != BATON_OK ||
           (code = read_number(root, "", "session", &message->session, reterr)) != BATON_OK ||
           (code = json_read_field(root, "", "result", true, JSON_OBJECT, &result, reterr)) !=
               BATON_OK);
    return code != BATON_OK ? code : read_result(&message->result, result, "result.", reterr);
}

int work_result_read(struct work_result *ret, const void *data, size_t bytes,
                     struct baton_error *reterr)
{
    struct work_result result = {0};
    json_t *root;
    int code = json_read_object(data, bytes, WORK_MESSAGE_MAX, DEPTH_MAX, &root, reterr);

    if (code != BATON_OK) {
        return code;
    }
    code = read_result(&result, root, "", reterr);
    json_decref(root);
    if (code != BATON_OK) {
        work_result_fini(&result);
        return code;
    }
    *ret = result;
    return BATON_OK;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static int read_type(enum work_message_type *ret, const json_t *root, struct baton_error *reterr)
{
    const char *name = NULL;
    int code = json_read_text(root, "", "type", true, BATON_NAME_MAX, &name, reterr);

    if (code != BATON_OK) {
        return code;
    }
    for (size_t i = 0; i < sizeof(message_types) / sizeof(message_types[0]); i++) {
        if (strcmp(message_types[i].name, name) == 0) {
            *ret = message_types[i].type;
            return BATON_OK;
        }
    }
    return error_set(reterr, BATON_EPROTO,
                     "type is \"%s\": must be assign, stop, ask, ack, report or done", name);
}

static int read_message(struct work_message *message, const json_t *root,
                        struct baton_error *reterr)
{
    int code = read_type(&message->type, root, reterr);

    if (code != BATON_OK) {
        return code;
    }
    switch (message->type) {
    case WORK_REPORT:
        return read_report(&message->report, root, reterr);
    case WORK_DONE:
        return read_done(message, root, reterr);
    default:
        return read_leaders(message, root, reterr);
    }
}

int work_message_read(struct work_message *ret, const void *data, size_t bytes,
                      struct baton_error *reterr)
{
    struct work_message message = {0};
    json_t *root;
    int code = json_read_object(data, bytes, WORK_MESSAGE_MAX, DEPTH_MAX, &root, reterr);

    if (code != BATON_OK) {
        return code;
    }
    code = read_message(&message, root, reterr);
    json_decref(root);
    if (code != BATON_OK) {
        work_message_fini(&message);
        return code;
    }
    *ret = message;
    return BATON_OK;
}
