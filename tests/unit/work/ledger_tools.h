/* What tests of the ledger share: items, claims, moves that must succeed. */
#ifndef TESTS_WORK_LEDGER_TOOLS_H
#define TESTS_WORK_LEDGER_TOOLS_H

#include "cmocka_all.h"
#include "work/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOW_MS = 1000 };

/* Of JSON text with ' in place of ". */
static inline struct work_item *make_item(const char *text)
{
    char json[1024];
    struct work_item *item = NULL;
    struct baton_error error;
    json_t *object;

    (void)snprintf(json, sizeof(json), "%s", text);
    for (char *at = json; *at; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    object = json_loads(json, 0, NULL);
    assert_non_null(object);
    if (work_item_read(&item, object, NULL, &error) != BATON_OK) {
        fail_msg("%s: %s", text, error.message);
    }
    json_decref(object);
    return item;
}

static inline struct ledger_entry *submit(struct ledger *ledger, const char *text)
{
    struct work_item *item = make_item(text);
    struct ledger_entry *entry = NULL;

    assert_int_equal(ledger_submit(ledger, item, NOW_MS, &entry), BATON_OK);
    work_item_unref(item);
    return entry;
}

static inline struct ledger_entry *submit_id(struct ledger *ledger, const char *id)
{
    char text[WORK_ID_MAX + 16];

    (void)snprintf(text, sizeof(text), "{'id':'%s'}", id);
    return submit(ledger, text);
}

static inline void place(struct ledger *ledger, struct ledger_entry *entry, const char *worker,
                         uint64_t session)
{
    assert_int_equal(ledger_place(ledger, entry, worker, session, 1, NOW_MS), BATON_OK);
}

static inline enum ledger_verdict claim(struct ledger *ledger, const char *worker, uint64_t session,
                                        const char *id, uint64_t epoch)
{
    const struct work_claim what = {.id = (char *)id, .epoch = epoch};
    enum ledger_verdict verdict;

    assert_int_equal(ledger_claim(ledger, worker, session, &what, false, NOW_MS, &verdict),
                     BATON_OK);
    return verdict;
}

static inline void encode(struct ledger *ledger, unsigned bucket, struct buffer *ret)
{
    buffer_init(ret, LEDGER_BUCKET_MAX);
    ledger_encode(ledger, bucket, ret);
    assert_false(ret->failed);
}

static inline int decode(struct ledger *ledger, unsigned bucket, const char *text)
{
    return ledger_decode(ledger, bucket, text, strlen(text), NULL);
}

/* All buckets of one into the other. */
static inline void copy_buckets(struct ledger *from, struct ledger *to)
{
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        struct baton_error error;
        struct buffer bytes;

        encode(from, i, &bytes);
        if (ledger_decode(to, i, bytes.data, bytes.bytes, &error) != BATON_OK) {
            fail_msg("%s", error.message);
        }
        buffer_fini(&bytes);
    }
}

#endif
