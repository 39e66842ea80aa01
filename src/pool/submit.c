#include "pool/submit.h"

#include "base/buffer.h"
#include "base/json_text.h"
#include "member/store.h"
#include "pool/names.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_NAME_MAX = POOL_SUBMISSION_MAX + 16 };

/* The items of one key. */
struct chunk {
    struct buffer data;
    size_t count; /* of all items up to its end */
    char name[CHUNK_NAME_MAX];
};

struct submit {
    struct member *member;
    struct chunk *chunks;
    size_t chunk_count;
    size_t at; /* that is being stored */
    char **ids;
    size_t count;
    bool is_named;   /* by the caller; else no earlier item had one of the ids */
    bool has_stored; /* at least one chunk, which was not there */
    pool_submitted_cb done;
    void *userdata;
    char pool[POOL_NAME_MAX + 1];
    char name[POOL_SUBMISSION_MAX + 1];
};

static void submit_free(struct submit *submit)
{
    for (size_t i = 0; i < submit->chunk_count; i++) {
        buffer_fini(&submit->chunks[i].data);
    }
    for (size_t i = 0; i < submit->count; i++) {
        free(submit->ids[i]);
    }
    free(submit->chunks);
    free((void *)submit->ids);
    free(submit);
}

/* ---- Storing --------------------------------------------------------------------------------- */

static void store(struct submit *submit);

static void finish(struct submit *submit, int code, const struct baton_error *error)
{
    const struct pool_submission submission = {
        .name = submit->name,
        .ids = (const char *const *)submit->ids,
        .count = submit->at > 0 ? submit->chunks[submit->at - 1].count : 0,
        .was_there = !submit->has_stored,
    };

    submit->done(submit->userdata, code, &submission, error);
    submit_free(submit);
}

static void go_on(struct submit *submit)
{
    submit->at++;
    if (submit->at == submit->chunk_count) {
        finish(submit, BATON_OK, NULL);
    } else {
        store(submit);
    }
}

static void key_of(char ret[static POOL_KEY_MAX], const struct submit *submit)
{
    char key[POOL_KEY_MAX];

    (void)snprintf(key, sizeof(key), "s/%s", submit->chunks[submit->at].name);
    pool_key(ret, submit->pool, key);
}

/* The key was there: by an earlier try, if it has the same items. */
static void on_compared(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct submit *submit = userdata;
    const struct buffer *data = &submit->chunks[submit->at].data;
    bool is_there = code == BATON_OK && count > 0 && values[0].data;
    struct baton_error error = {0};

    if (is_there && values[0].bytes == data->bytes &&
        memcmp(values[0].data, data->data, data->bytes) == 0) {
        go_on(submit);
        return;
    }
    if (code != BATON_OK) {
        (void)error_set(&error, code, "submission \"%s\": %s", submit->name, baton_strerror(code));
    } else {
        code = error_set(&error, BATON_EEXIST,
                         "submission \"%s\": there is one with other items; give this one another "
                         "name",
                         submit->name);
    }
    finish(submit, code, &error);
}

static void on_stored(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct submit *submit = userdata;
    char key[POOL_KEY_MAX];
    struct baton_error own;
    (void)revision;

    if (code == BATON_OK) {
        submit->has_stored = true;
        go_on(submit);
        return;
    }
    if (code == BATON_ECONFLICT) {
        key_of(key, submit);
        code = store_get(submit->member, key, on_compared, submit, &own);
        error = &own;
    }
    if (code != BATON_OK) {
        finish(submit, code, error);
    }
}

static int try_to_store(struct submit *submit, struct baton_error *reterr)
{
    const struct buffer *data = &submit->chunks[submit->at].data;
    char key[POOL_KEY_MAX];

    key_of(key, submit);
    return store_put(submit->member, key, data->data, data->bytes, 0, SPAN_NS(0), on_stored, submit,
                     reterr);
}

static void store(struct submit *submit)
{
    struct baton_error error;
    int code = try_to_store(submit, &error);

    if (code != BATON_OK) {
        finish(submit, code, &error);
    }
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

static const char ends[] = "]}";

static struct chunk *next_chunk(struct submit *submit)
{
    struct chunk *more =
        realloc(submit->chunks, (submit->chunk_count + 1) * sizeof(*submit->chunks));
    struct chunk *chunk;

    if (!more) {
        return NULL;
    }
    submit->chunks = more;
    chunk = &more[submit->chunk_count];
    *chunk = (struct chunk){.count = submit->count};
    (void)snprintf(chunk->name, sizeof(chunk->name), "%s", submit->name);
    if (submit->chunk_count > 0) {
        (void)snprintf(chunk->name, sizeof(chunk->name), "%s-%zu", submit->name,
                       submit->chunk_count);
    }
    buffer_init(&chunk->data, WORK_SUBMISSION_MAX);
    buffer_printf(&chunk->data, "{\"unique\":%s,\"items\":[", submit->is_named ? "false" : "true");
    submit->chunk_count++;
    return chunk;
}

/* Ends it, and takes its items' ids. */
static int close_chunk(struct submit *submit, struct chunk *chunk, struct baton_error *reterr)
{
    struct work_item **items;
    size_t count, first = submit->count;
    int code = BATON_OK;

    buffer_put_text(&chunk->data, ends);
    if (chunk->data.failed) {
        return error_set(reterr, BATON_ETOOBIG,
                         "item %zu: it has more than the %d bytes that a submission may have",
                         first, WORK_SUBMISSION_MAX);
    }
    code = work_submission_read(&items, &count, chunk->name, chunk->data.data, chunk->data.bytes,
                                reterr);
    if (code != BATON_OK) {
        return first > 0 ? error_wrap(reterr, "of the items from %zu on", first) : code;
    }
    for (size_t i = 0; i < count; i++) {
        submit->ids[submit->count] = strdup(items[i]->id);
        if (submit->ids[submit->count]) {
            submit->count++;
        }
        work_item_unref(items[i]);
    }
    free((void *)items);
    chunk->count = submit->count;
    return submit->count == first + count ? BATON_OK
                                          : error_set(reterr, BATON_ENOMEM, "out of memory");
}

static int add_item(struct submit *submit, struct chunk **chunk, size_t *in_chunk,
                    const json_t *item, struct baton_error *reterr)
{
    char *text = json_text(item, JSON_COMPACT | JSON_ENCODE_ANY);
    size_t bytes = text ? strlen(text) : 0;
    int code = BATON_OK;

    if (*chunk && (*in_chunk == WORK_SUBMITTED_MAX ||
                   (*chunk)->data.bytes + bytes + sizeof(ends) > POOL_CHUNK_MAX)) {
        code = close_chunk(submit, *chunk, reterr);
        *chunk = NULL;
    }
    if (code == BATON_OK && !*chunk) {
        *chunk = next_chunk(submit);
        *in_chunk = 0;
    }
    if (code == BATON_OK && (!text || !*chunk)) {
        code = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (code == BATON_OK) {
        buffer_put_text(&(*chunk)->data, (*in_chunk)++ > 0 ? "," : "");
        buffer_put(&(*chunk)->data, text, bytes);
    }
    free(text);
    return code;
}

static int make_chunks(struct submit *submit, const json_t *items, struct baton_error *reterr)
{
    struct chunk *chunk = NULL;
    size_t in_chunk = 0;
    int code = BATON_OK;

    submit->ids = (char **)calloc(json_array_size(items), sizeof(*submit->ids));
    if (!submit->ids) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < json_array_size(items) && code == BATON_OK; i++) {
        code = add_item(submit, &chunk, &in_chunk, json_array_get(items, i), reterr);
    }
    return code ? code : close_chunk(submit, chunk, reterr);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static int check(const char *pool, const char *name, const json_t *items,
                 struct baton_error *reterr)
{
    int code = pool_name_check(pool, reterr);

    if (code == BATON_OK && name &&
        (!work_id_is_valid(name) || strlen(name) > POOL_SUBMISSION_MAX)) {
        return error_set(reterr, BATON_EINVAL,
                         "submission \"%.60s\": must have 1 to %d letters, digits and characters "
                         "of \"-_.:/{};@+=,\"",
                         name, POOL_SUBMISSION_MAX);
    }
    if (code == BATON_OK &&
        (json_array_size(items) == 0 || json_array_size(items) > POOL_SUBMITTED_MAX)) {
        return error_set(reterr, BATON_EINVAL, "a submission has 1 to %d items, not %zu",
                         POOL_SUBMITTED_MAX, json_array_size(items));
    }
    return code;
}

static void name_submission(struct submit *submit, const char *name)
{
    uint64_t number = 0;

    if (name) {
        submit->is_named = true;
        (void)snprintf(submit->name, sizeof(submit->name), "%s", name);
    } else {
        (void)RAND_bytes((unsigned char *)&number, sizeof(number));
        (void)snprintf(submit->name, sizeof(submit->name), "%016llx", (unsigned long long)number);
    }
}

int pool_submit(struct member *member, const char *pool, const char *name, const json_t *items,
                pool_submitted_cb done, void *userdata, struct baton_error *reterr)
{
    int code = check(pool, name, items, reterr);
    struct submit *submit = code ? NULL : calloc(1, sizeof(*submit));

    if (!submit) {
        return code ? code : error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    submit->member = member;
    submit->done = done;
    submit->userdata = userdata;
    (void)snprintf(submit->pool, sizeof(submit->pool), "%s", pool);
    name_submission(submit, name);
    code = make_chunks(submit, items, reterr);
    code = code ? code : try_to_store(submit, reterr);
    if (code != BATON_OK) {
        submit_free(submit);
    }
    return code;
}
