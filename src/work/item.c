/* Items and their members; the lists in them: item_lists.c. */
#include "work/item.h"

#include "base/json_bytes.h"
#include "base/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

static const char *const kind_names[] = {[WORK_JOB] = "job", [WORK_SERVICE] = "service"};

/* X(member, least, most, default): the numbers of an item. */
#define ITEM_NUMBERS(X)                                                                            \
    X(priority, INT32_MIN, INT32_MAX, 0)                                                           \
    X(weight, 1, WORK_WEIGHT_MAX, 1)                                                               \
    X(retries, 0, WORK_RETRIES_MAX, 0)                                                             \
    X(gpus, 0, WORK_GPUS_MAX, 0)                                                                   \
    X(memory_mib, 0, WORK_MEMORY_MAX_MIB, 0)

/* X(member, name in JSON, default) */
#define ITEM_SPANS(X)                                                                              \
    X(backoff, "backoff_ms", WORK_BACKOFF_MS)                                                      \
    X(timeout, "timeout_ms", 0)

struct work_item *work_item_ref(struct work_item *item)
{
    item->references++;
    return item;
}

void work_item_unref(struct work_item *item)
{
    if (!item || --item->references > 0) {
        return;
    }
    work_keys_free(item->keys);
    free(item->id);
    free(item->needs);
    free(item->together);
    free(item->body);
    free(item);
}

bool work_id_is_valid(const char *id)
{
    size_t bytes = strlen(id);

    if (bytes == 0 || bytes >= WORK_ID_MAX || id[0] == '/' || id[bytes - 1] == '/') {
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        bool is_plain = (id[i] >= 'a' && id[i] <= 'z') || (id[i] >= 'A' && id[i] <= 'Z') ||
                        (id[i] >= '0' && id[i] <= '9');
        if ((!is_plain && !strchr("-_.:/{};@+=,", id[i])) || (id[i] == '/' && id[i + 1] == '/')) {
            return false;
        }
    }
    return true;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int read_numbers(struct work_item *item, const json_t *object, struct baton_error *reterr)
{
    int64_t number;
    bool is_given;
    int code;

#define READ_NUMBER(member, least, most, preset)                                                   \
    code = json_read_integer(object, "", #member, (least), (most), &is_given, &number, reterr);    \
    if (code != BATON_OK) {                                                                        \
        return code;                                                                               \
    }                                                                                              \
    item->member = (__typeof__(item->member))(is_given ? number : (preset));
#define READ_SPAN(member, name, preset)                                                            \
    code = json_read_integer(object, "", (name), 0, WORK_SPAN_MAX_MS, &is_given, &number, reterr); \
    if (code != BATON_OK) {                                                                        \
        return code;                                                                               \
    }                                                                                              \
    item->member = SPAN_MS(is_given ? number : (preset));
    ITEM_NUMBERS(READ_NUMBER)
    ITEM_SPANS(READ_SPAN)
#undef READ_NUMBER
#undef READ_SPAN
    return BATON_OK;
}

/* An id, or another name of the same form. */
static int read_name(char **ret, const json_t *object, const char *key, const char *preset,
                     bool is_required, struct baton_error *reterr)
{
    const char *text;
    int code = json_read_text(object, "", key, is_required, WORK_ID_MAX - 1, &text, reterr);

    if (code != BATON_OK) {
        return code;
    }
    text = text ? text : preset;
    if (text && !work_id_is_valid(text)) {
        return error_set(reterr, BATON_EPROTO,
                         "%s is \"%s\": must be letters, digits and -_.:/{};@+=, and no slash at "
                         "its ends or beside another",
                         key, text);
    }
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? error_set(reterr, BATON_ENOMEM, "%s: out of memory", key) : BATON_OK;
}

static int read_kind(struct work_item *item, const json_t *object, struct baton_error *reterr)
{
    const char *kind;
    int code = json_read_text(object, "", "kind", false, WORK_ID_MAX, &kind, reterr);

    if (code == BATON_OK && kind && strcmp(kind, kind_names[WORK_SERVICE]) == 0) {
        item->kind = WORK_SERVICE;
    } else if (code == BATON_OK && kind && strcmp(kind, kind_names[WORK_JOB]) != 0) {
        return error_set(reterr, BATON_EPROTO, "kind is \"%s\": must be job or service", kind);
    }
    return code;
}

static int read_needs(struct work_item *item, const json_t *object, struct baton_error *reterr)
{
    char needs[WORK_NEEDS_MAX];
    int code = work_labels_read(object, "", "needs", needs, reterr);

    if (code == BATON_OK && !(item->needs = strdup(needs))) {
        return error_set(reterr, BATON_ENOMEM, "needs: out of memory");
    }
    return code;
}

static int read_members(struct work_item *item, const json_t *object, const char *id,
                        struct baton_error *reterr)
{
    int code;

    if (!json_is_object(object)) {
        return error_set(reterr, BATON_EPROTO, "it is %s: must be an object",
                         json_type_name(json_typeof(object)));
    }
    (void)((code = read_name(&item->id, object, "id", id, !id, reterr)) != BATON_OK ||
           (code = read_kind(item, object, reterr)) != BATON_OK ||
           (code = json_read_flag(object, "", "unique", &item->is_unique, reterr)) != BATON_OK ||
           (code = read_numbers(item, object, reterr)) != BATON_OK ||
           (code = read_needs(item, object, reterr)) != BATON_OK ||
           (code = read_name(&item->together, object, "together", NULL, false, reterr)) !=
               BATON_OK ||
           (code = work_keys_read(object, "", "keys", &item->keys, reterr)) != BATON_OK ||
           (code = json_read_bytes(object, "", "body", WORK_BODY_MAX, &item->body,
                                   &item->body_bytes, reterr)) != BATON_OK);
    return code;
}

/* The readers of JSON speak of a peer; here it is the user who is wrong. */
static int as_users_error(int code, struct baton_error *reterr)
{
    if (code != BATON_EPROTO) {
        return code;
    }
    if (reterr) {
        reterr->code = BATON_EINVAL;
    }
    return BATON_EINVAL;
}

int work_item_read(struct work_item **ret, const json_t *object, const char *id,
                   struct baton_error *reterr)
{
    struct work_item *item = calloc(1, sizeof(*item));
    int code;

    if (!item) {
        return error_set(reterr, BATON_ENOMEM, "out of memory while reading an item");
    }
    item->references = 1;
    code = read_members(item, object, id, reterr);
    if (code != BATON_OK) {
        work_item_unref(item);
        return as_users_error(code, reterr);
    }
    *ret = item;
    return BATON_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static bool put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static bool put_numbers(json_t *object, const struct work_item *item)
{
    bool is_put = true;

#define PUT_NUMBER(member, least, most, preset)                                                    \
    if (item->member != (preset)) {                                                                \
        is_put &= put(object, #member, json_integer((json_int_t)item->member));                    \
    }
#define PUT_SPAN(member, name, preset)                                                             \
    if (item->member.ns != SPAN_MS(preset).ns) {                                                   \
        is_put &= put(object, (name), json_integer(item->member.ns / 1000000));                    \
    }
    ITEM_NUMBERS(PUT_NUMBER)
    ITEM_SPANS(PUT_SPAN)
#undef PUT_NUMBER
#undef PUT_SPAN
    return is_put;
}

json_t *work_item_json(const struct work_item *item)
{
    json_t *object = json_object();
    bool is_put =
        put(object, "id", json_string(item->id)) && put_numbers(object, item) &&
        (item->kind == WORK_JOB || put(object, "kind", json_string(kind_names[item->kind]))) &&
        (!item->is_unique || put(object, "unique", json_true())) &&
        (!item->needs[0] || put(object, "needs", work_labels_json(item->needs))) &&
        (!item->together || put(object, "together", json_string(item->together))) &&
        (!item->keys || put(object, "keys", work_keys_json(item->keys))) &&
        json_put_bytes(object, "body", item->body, item->body_bytes);

    if (!is_put) {
        json_decref(object);
        return NULL;
    }
    return object;
}

bool work_item_equal(const struct work_item *a, const struct work_item *b)
{
#define IS_EQUAL_NUMBER(member, least, most, preset) a->member == b->member &&
#define IS_EQUAL_SPAN(member, name, preset)          a->member.ns == b->member.ns &&
    return a == b ||
           (ITEM_NUMBERS(IS_EQUAL_NUMBER) ITEM_SPANS(IS_EQUAL_SPAN) strcmp(a->id, b->id) == 0 &&
            a->kind == b->kind && a->is_unique == b->is_unique && strcmp(a->needs, b->needs) == 0 &&
            strcmp(a->together ? a->together : "", b->together ? b->together : "") == 0 &&
            work_keys_equal(a->keys, b->keys) && a->body_bytes == b->body_bytes &&
            (a->body_bytes == 0 || memcmp(a->body, b->body, a->body_bytes) == 0));
#undef IS_EQUAL_NUMBER
#undef IS_EQUAL_SPAN
}

/* ---- Submissions ----------------------------------------------------------------------------- */

static void free_items(struct work_item **items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        work_item_unref(items[i]);
    }
    free((void *)items);
}

static int read_submitted(struct work_item **ret, const json_t *object, const char *name, size_t at,
                          bool is_unique, struct baton_error *reterr)
{
    bool has_id = json_is_string(json_object_get(object, "id"));
    char id[2 * WORK_ID_MAX];
    int code;

    (void)snprintf(id, sizeof(id), "%s.%zu", name, at);
    code = work_item_read(ret, object, id, reterr);
    if (code != BATON_OK) {
        (void)error_wrap(reterr, "items[%zu]", at);
        return code;
    }
    (*ret)->is_unique = is_unique && !has_id;
    return BATON_OK;
}

static int read_all(struct work_item ***ret, size_t *ret_count, const char *name,
                    const json_t *root, struct baton_error *reterr)
{
    struct work_item **items;
    bool is_unique;
    json_t *list;
    size_t count;
    int code = json_read_field(root, "", "items", true, JSON_ARRAY, &list, reterr);

    if (code != BATON_OK ||
        (code = json_read_flag(root, "", "unique", &is_unique, reterr)) != BATON_OK) {
        return code;
    }
    count = json_array_size(list);
    if (count == 0 || count > WORK_SUBMITTED_MAX) {
        return error_set(reterr, BATON_EPROTO, "items has %zu: must be 1 to %d", count,
                         WORK_SUBMITTED_MAX);
    }
    items = (struct work_item **)calloc(count, sizeof(struct work_item *));
    if (!items) {
        return error_set(reterr, BATON_ENOMEM, "out of memory while reading a submission");
    }
    for (size_t i = 0; i < count; i++) {
        code = read_submitted(&items[i], json_array_get(list, i), name, i, is_unique, reterr);
        if (code != BATON_OK) {
            free_items(items, i);
            return code;
        }
    }
    *ret = items;
    *ret_count = count;
    return BATON_OK;
}

int work_submission_read(struct work_item ***ret, size_t *ret_count, const char *name,
                         const void *data, size_t bytes, struct baton_error *reterr)
{
    json_t *root;
    int code;

    if (strlen(name) > WORK_ID_MAX - 8 || !work_id_is_valid(name)) {
        return error_set(reterr, BATON_EINVAL,
                         "submission \"%.*s\": its name must be 1 to %d letters, digits and "
                         "-_.:/{};@+=, and no slash at its ends or beside another",
                         WORK_ID_MAX, name, WORK_ID_MAX - 8);
    }
    code = json_read_object(data, bytes, WORK_SUBMISSION_MAX, DEPTH_MAX, &root, reterr);
    if (code == BATON_OK) {
        code = read_all(ret, ret_count, name, root, reterr);
        json_decref(root);
    }
    return as_users_error(code, reterr);
}
