#include "work/leader_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one pass of placement works on. */
struct pass {
    struct placement_node *nodes;
    struct leader_known **known; /* of each node */
    struct placement_node *left; /* of each node: what nothing takes now, whatever is to move */
    size_t node_count;
    struct placement_item *items;
    struct ledger_entry **entries; /* of each item */
    size_t item_count, item_room;
};

static void pass_fini(struct pass *pass)
{
    free(pass->nodes);
    free((void *)pass->known);
    free(pass->left);
    free(pass->items);
    free((void *)pass->entries);
}

static bool pass_add(struct pass *pass, struct ledger_entry *entry, int32_t node, bool is_pinned)
{
    const struct work_item *item = entry->item;

    if (pass->item_count == pass->item_room) {
        return false;
    }
    pass->entries[pass->item_count] = entry;
    pass->items[pass->item_count++] = (struct placement_item){.id = entry->id,
                                                              .weight = item->weight,
                                                              .priority = item->priority,
                                                              .needs = item->needs,
                                                              .memory_mib = item->memory_mib,
                                                              .gpus = item->gpus,
                                                              .together = item->together,
                                                              .node = node,
                                                              .is_pinned = is_pinned};
    return true;
}

/* False: out of memory. */
static bool pass_init(struct pass *pass, struct work_leader *leader, size_t items)
{
    size_t workers = HASH_COUNT(leader->known);

    *pass = (struct pass){
        .nodes = calloc(workers + 1, sizeof(*pass->nodes)),
        .known = calloc(workers + 1, sizeof(void *)),
        .left = calloc(workers + 1, sizeof(*pass->left)),
        .items = calloc(items + 1, sizeof(*pass->items)),
        .entries = calloc(items + 1, sizeof(void *)),
        .item_room = items,
    };
    if (!pass->nodes || !pass->known || !pass->left || !pass->items || !pass->entries) {
        pass_fini(pass);
        leader->is_over = true;
        return false;
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct leader_known *const *)a)->name,
                  (*(struct leader_known *const *)b)->name);
}

static void add_nodes(struct pass *pass, const struct work_leader *leader)
{
    struct leader_known *known, *next;

    for (known = leader->known; known; known = next) {
        next = known->hh.next;
        if (leader_is_reachable(known)) {
            pass->known[pass->node_count++] = known;
        }
    }
    qsort((void *)pass->known, pass->node_count, sizeof(struct leader_known *), by_name);
    for (size_t i = 0; i < pass->node_count; i++) {
        known = pass->known[i];
        pass->nodes[i] =
            (struct placement_node){.name = known->name,
                                    .slots = known->slots,
                                    .memory_mib = known->memory_mib,
                                    .gpus = known->gpus,
                                    .labels = known->labels,
                                    .is_healthy = true,
                                    .is_cordoned = known->is_silent,
                                    .is_draining = known->is_leaving || known->is_draining};
    }
}

static uint32_t less(uint32_t from, uint32_t by)
{
    return from > by ? from - by : 0;
}

static void take(struct placement_node *node, const struct work_item *item)
{
    node->slots = less(node->slots, item ? item->weight : 1);
    if (item) {
        node->gpus = less(node->gpus, item->gpus);
        node->memory_mib -=
            item->memory_mib < node->memory_mib ? item->memory_mib : node->memory_mib;
    }
}

/* A node has what its items leave of it. */
static void take_used(struct placement_node *node, const struct ledger_place *place)
{
    uint32_t slots = node->slots;
    uint64_t used = 0;

    for (const struct ledger_entry *entry = ledger_place_entries(place); entry;
         entry = entry->next) {
        used += entry->item ? entry->item->weight : 1;
        take(node, entry->item);
    }
    node->cpu_permille = slots > 0 ? (uint32_t)(used * 1000 / slots) : 0;
}

static void find_left(struct pass *pass, const struct work_leader *leader)
{
    for (size_t i = 0; i < pass->node_count; i++) {
        const struct ledger_place *place =
            ledger_place_find(leader->ledger, pass->known[i]->name, pass->known[i]->session);

        pass->left[i] = pass->nodes[i];
        if (place) {
            take_used(&pass->left[i], place);
        }
    }
}

/* All that runs, where it runs: a job stays there, a service may move. A service that is to move
 * counts as one that waits, so that the others of its group do not follow it back. */
static void add_running(struct pass *pass, const struct work_leader *leader)
{
    for (size_t i = 0; i < pass->node_count; i++) {
        const struct ledger_place *place =
            ledger_place_find(leader->ledger, pass->known[i]->name, pass->known[i]->session);

        for (struct ledger_entry *entry = place ? ledger_place_entries(place) : NULL; entry;
             entry = entry->next) {
            bool is_moving = entry->wish == WORK_MOVE;

            if (entry->item) {
                (void)pass_add(pass, entry, is_moving ? PLACEMENT_NOWHERE : (int32_t)i,
                               !is_moving &&
                                   (entry->item->kind == WORK_JOB || entry->wish != WORK_STAY));
            }
        }
    }
}

/* ---- Idle items ------------------------------------------------------------------------------ */

/* Items that need the same have the same fate, so of each class no more are looked at than there
 * is room for. */
struct need {
    size_t count;
    UT_hash_handle hh;
    char key[WORK_NEEDS_MAX + 64];
};

static struct need *need_of(struct need **needs, const struct work_item *item)
{
    struct need *need;
    char key[sizeof(need->key)];

    (void)snprintf(key, sizeof(key), "%s|%llu|%u|%u", item->needs,
                   (unsigned long long)item->memory_mib, item->gpus, item->weight);
    HASH_FIND_STR(*needs, key, need);
    if (!need && (need = calloc(1, sizeof(*need)))) {
        memcpy(need->key, key, sizeof(key));
        HASH_ADD_STR(*needs, key, need);
        if (!need->hh.tbl) {
            free(need);
            return NULL;
        }
    }
    return need;
}

static void needs_free(struct need **needs)
{
    struct need *need, *next;

    for (need = *needs; need; need = next) {
        next = need->hh.next;
        HASH_DEL(*needs, need);
        free(need);
    }
}

/* A worker that is not heard may have a later copy of what the lost ledger had, until its lease
 * ends, unless another one ran when the ledger was lost already. */
static bool may_run(const struct work_leader *leader, const struct ledger_entry *entry)
{
    return leader->is_rebuilt && leader->was_lost && entry->epoch < leader->options.epoch &&
           (entry->epoch != 0 ? entry->epoch != entry->ran : !entry->item->is_unique) &&
           !WORK_MUTANT(REBUILDS_IN_HASTE);
}

static instant ripe_at(const struct work_leader *leader, const struct ledger_entry *entry)
{
    instant leases_end = instant_add(leader->began, leader->options.worker_lease);

    return may_run(leader, entry) ? instant_max(entry->not_before, leases_end) : entry->not_before;
}

/* Whether its time has come; otherwise the leader looks again then. */
static bool is_ripe(struct work_leader *leader, const struct ledger_entry *entry, instant now)
{
    struct leader_result *result;

    HASH_FIND_STR(leader->results, entry->id, result);
    if (!entry->item || leader->buckets[entry->bucket].is_reading) {
        return false;
    }
    if (result && result->state != RESULT_WRITTEN) {
        return false; /* the attempt that was lost has ended before */
    }
    if (!instant_before(now, ripe_at(leader, entry))) {
        return true;
    }
    leader->place_at = instant_min(leader->place_at, ripe_at(leader, entry));
    return false;
}

/* Returns whether one of them has to share a worker with others. */
static bool add_idle(struct pass *pass, struct work_leader *leader, size_t room, instant now)
{
    struct need *needs = NULL;
    bool is_together = false;

    leader->place_at = INSTANT_NEVER;
    for (struct ledger_entry *entry = ledger_idle(leader->ledger); entry; entry = entry->next) {
        struct need *need;

        if (!is_ripe(leader, entry, now)) {
            continue;
        }
        need = need_of(&needs, entry->item);
        leader->is_over = leader->is_over || !need;
        if (need && need->count++ <= room && pass_add(pass, entry, PLACEMENT_NOWHERE, false)) {
            is_together = is_together || entry->item->together;
        }
    }
    needs_free(&needs);
    return is_together;
}

static size_t free_slots(const struct pass *pass)
{
    size_t room = 0;

    for (size_t i = 0; i < pass->node_count; i++) {
        room += pass->nodes[i].slots;
    }
    return room;
}

/* ---- The answer ------------------------------------------------------------------------------ */

void leader_wish(struct work_leader *leader, struct ledger_entry *entry, enum work_wish wish)
{
    struct leader_known *known = leader_known(leader, ledger_place_worker(entry->place));

    if (entry->wish == wish || (entry->wish != WORK_STAY && wish != WORK_CANCEL)) {
        return; /* it stops already */
    }
    if (entry->wish == WORK_STAY) {
        entry->told = (struct work_number){0};
    }
    entry->wish = wish;
    if (known) {
        known->is_due = true;
    }
}

/* What is to leave a worker is still there: an item that needs its room waits for that. */
static bool has_room(const struct placement_node *left, const struct work_item *item)
{
    return WORK_MUTANT(ROOM_OF_THE_MOVING) ||
           (item->weight <= left->slots && item->gpus <= left->gpus &&
            item->memory_mib <= left->memory_mib);
}

static void place(struct work_leader *leader, const struct pass *pass, struct ledger_entry *entry,
                  int32_t node, int64_t now_unix_ms)
{
    struct leader_known *known = pass->known[node];
    int code = ledger_place(leader->ledger, entry, known->name, known->session,
                            leader->options.epoch, now_unix_ms);

    leader->is_over = leader->is_over || code == BATON_ENOMEM;
    if (code == BATON_OK) {
        entry->is_ours = true;
        leader->counters.assigned++;
        known->is_due = true;
        take(&pass->left[node], entry->item);
    }
}

static void carry_out(struct work_leader *leader, const struct pass *pass,
                      const struct placement_answer *answer, int64_t now_unix_ms)
{
    for (size_t i = 0; i < pass->item_count; i++) {
        struct ledger_entry *entry = pass->entries[i];
        int32_t node = answer->places[i].node;

        entry->reason = (uint8_t)answer->places[i].reason;
        if (entry->state == WORK_PROCESSING) {
            if (node != pass->items[i].node && !pass->items[i].is_pinned) {
                leader_wish(leader, entry, WORK_MOVE);
            }
        } else if (node != PLACEMENT_NOWHERE && (entry->reason == PLACEMENT_OVERFILLS ||
                                                 has_room(&pass->left[node], entry->item))) {
            place(leader, pass, entry, node, now_unix_ms);
        }
    }
}

static void solve(struct work_leader *leader, const struct pass *pass, bool balances,
                  int64_t now_unix_ms)
{
    enum { ANY_IMBALANCE = 1000000 };
    struct placement_problem problem = {
        .nodes = pass->nodes,
        .node_count = pass->node_count,
        .items = pass->items,
        .item_count = pass->item_count,
        .strategy = leader->options.strategy,
        .hysteresis_permille =
            balances ? leader->options.rebalance_percent * 10 : (uint32_t)ANY_IMBALANCE,
        .overfills = leader->options.overfills,
    };
    struct placement_answer answer = {0};
    int code = pass->item_count > 0 ? placement_solve(&problem, &answer) : BATON_OK;

    leader->is_over = leader->is_over || code == BATON_ENOMEM;
    if (pass->item_count > 0 && code == BATON_OK) {
        carry_out(leader, pass, &answer, now_unix_ms);
        placement_answer_fini(&answer);
    }
}

/* Idle items on what is left of the workers. False: some have to share a worker with others, so
 * all that runs has to be looked at. */
static bool place_idle(struct work_leader *leader, instant now, int64_t now_unix_ms)
{
    struct pass pass;
    bool is_alone = true;

    if (!pass_init(&pass, leader, ledger_count(leader->ledger, WORK_IDLE))) {
        return true;
    }
    add_nodes(&pass, leader);
    find_left(&pass, leader);
    memcpy(pass.nodes, pass.left, pass.node_count * sizeof(*pass.nodes));
    if (free_slots(&pass) > 0 || leader->options.overfills || pass.node_count == 0) {
        is_alone = !add_idle(&pass, leader, free_slots(&pass), now);
        if (is_alone) {
            solve(leader, &pass, false, now_unix_ms);
        }
    } else {
        leader->place_at = INSTANT_NEVER; /* the next free slot is an occasion */
    }
    pass_fini(&pass);
    return is_alone;
}

/* Beside all that runs. */
static void place_all(struct work_leader *leader, bool balances, instant now, int64_t now_unix_ms)
{
    struct pass pass;

    if (!pass_init(&pass, leader,
                   ledger_count(leader->ledger, WORK_IDLE) +
                       ledger_count(leader->ledger, WORK_PROCESSING))) {
        return;
    }
    add_nodes(&pass, leader);
    find_left(&pass, leader);
    add_running(&pass, leader);
    (void)add_idle(&pass, leader, SIZE_MAX - 1, now);
    solve(leader, &pass, balances, now_unix_ms);
    pass_fini(&pass);
}

/* Something waits to leave a worker, which it may do when another one has room. */
static bool is_anything_leaving(const struct work_leader *leader)
{
    const struct leader_known *known;

    for (known = leader->known; known; known = known->hh.next) {
        if ((known->is_leaving || known->is_draining) &&
            ledger_place_find(leader->ledger, known->name, known->session)) {
            return true;
        }
    }
    return false;
}

/* With few items all are looked at each time, so that what was moved for balance goes where it was
 * to go. With many that takes too long: what is left of each worker is as good a reason. */
void leader_place(struct work_leader *leader, instant now, int64_t now_unix_ms)
{
    enum { FEW = 1000 };
    bool balances = leader->is_balance_due;
    bool is_leaving = is_anything_leaving(leader);
    bool is_all = balances || is_leaving || ledger_count(leader->ledger, WORK_PROCESSING) <= FEW;

    if (!leader->is_ready || (!leader->is_place_due && !balances)) {
        return;
    }
    leader->is_place_due = leader->is_balance_due = false;
    if (!balances && !is_leaving && ledger_count(leader->ledger, WORK_IDLE) == 0) {
        leader->place_at = INSTANT_NEVER;
        return;
    }
    if (is_all || !place_idle(leader, now, now_unix_ms)) {
        place_all(leader, balances, now, now_unix_ms);
    }
}
