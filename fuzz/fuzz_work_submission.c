/* The items that a client submits. Each comes back as it was from its own JSON. */
#include "work/item.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void come_back(const struct work_item *item)
{
    json_t *json = work_item_json(item);
    struct work_item *again = NULL;

    expect(work_id_is_valid(item->id));
    expect(json != NULL && work_item_read(&again, json, NULL, NULL) == BATON_OK);
    expect(work_item_equal(item, again));
    json_decref(json);
    work_item_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct work_item **items;
    size_t count;

    if (work_submission_read(&items, &count, "batch-1", data, bytes, NULL) != BATON_OK) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        come_back(items[i]);
        work_item_unref(items[i]);
    }
    free((void *)items);
    return 0;
}
