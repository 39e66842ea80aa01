/* Which items map a key. A mapping has a link for each item and each claim that names the key. */
#include "work/ledger_int.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct ledger_link {
    struct ledger_mapping *mapping;
    struct ledger_entry *entry;
    bool is_claimed; /* by its worker; else by its item */
    struct ledger_link *prev, *next;
};

struct ledger_mapping {
    struct ledger_link *links;
    UT_hash_handle hh;
    char key[];
};

struct ledger_keys {
    size_t count;
    struct ledger_link links[];
};

static struct ledger_mapping *find(const struct ledger *ledger, const char *key)
{
    struct ledger_mapping *mapping;

    HASH_FIND_STR(ledger->mappings, key, mapping);
    return mapping;
}

static struct ledger_mapping *find_or_add(struct ledger *ledger, const char *key)
{
    struct ledger_mapping *mapping = find(ledger, key);
    size_t length = strlen(key);

    if (mapping || !(mapping = calloc(1, sizeof(*mapping) + length + 1))) {
        return mapping;
    }
    memcpy(mapping->key, key, length);
    HASH_ADD_KEYPTR(hh, ledger->mappings, mapping->key, length, mapping);
    if (!mapping->hh.tbl) {
        free(mapping);
        return NULL;
    }
    return mapping;
}

void ledger_keys_clear(struct ledger *ledger, struct ledger_keys **set)
{
    for (size_t i = 0; *set && i < (*set)->count; i++) {
        struct ledger_link *link = &(*set)->links[i];
        struct ledger_mapping *mapping = link->mapping;

        DL_DELETE(mapping->links, link);
        if (!mapping->links) {
            HASH_DEL(ledger->mappings, mapping); /* NOLINT(clang-analyzer-unix.Malloc) */
            free(mapping);
        }
    }
    free(*set);
    *set = NULL;
}

static bool is_same(const struct ledger_keys *set, char *const *keys)
{
    size_t i = 0;

    while (set && i < set->count && keys[i] && strcmp(set->links[i].mapping->key, keys[i]) == 0) {
        i++;
    }
    return set && i == set->count && !keys[i];
}

int ledger_keys_set(struct ledger *ledger, struct ledger_entry *entry, bool is_claimed,
                    struct ledger_keys **set, char *const *keys)
{
    struct ledger_keys *made;
    size_t count = 0;

    if (!keys) {
        ledger_keys_clear(ledger, set);
        return BATON_OK;
    }
    if (is_same(*set, keys)) {
        return BATON_OK;
    }
    while (keys[count]) {
        count++;
    }
    made = calloc(1, sizeof(*made) + count * sizeof(made->links[0]));
    if (!made) {
        return BATON_ENOMEM;
    }
    for (; made->count < count; made->count++) {
        struct ledger_link *link = &made->links[made->count];

        link->mapping = find_or_add(ledger, keys[made->count]);
        if (!link->mapping) {
            ledger_keys_clear(ledger, &made);
            return BATON_ENOMEM;
        }
        link->entry = entry;
        link->is_claimed = is_claimed;
        DL_APPEND(link->mapping->links, link);
    }
    ledger_keys_clear(ledger, set);
    *set = made;
    return BATON_OK;
}

/* What the worker says of a running item counts, not what the item said. */
static bool counts(const struct ledger_link *link)
{
    return !work_state_is_final(link->entry->state) &&
           (link->is_claimed || !link->entry->claimed_keys);
}

const struct ledger_entry *ledger_locate(const struct ledger *ledger, const char *key)
{
    const struct ledger_mapping *mapping = find(ledger, key);
    const struct ledger_entry *best = NULL;

    for (const struct ledger_link *at = mapping ? mapping->links : NULL; at; at = at->next) {
        if (counts(at) && (!best || at->entry->epoch > best->epoch)) {
            best = at->entry;
        }
    }
    return best;
}

size_t ledger_keys_lost(const struct ledger *ledger)
{
    size_t lost = 0;

    for (const struct ledger_mapping *at = ledger->mappings; at; at = at->hh.next) {
        const struct ledger_entry *first = NULL;
        bool is_double = false;

        for (const struct ledger_link *link = at->links; link; link = link->next) {
            if (counts(link)) {
                is_double |= first && first != link->entry;
                first = link->entry;
            }
        }
        lost += is_double || !first;
    }
    return lost;
}
