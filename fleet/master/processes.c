#include "fleet/master/master_int.h"

#include "base/error.h"
#include "fleet/plan/spread.h"
#include "member/members.h"

#include <stdlib.h>
#include <string.h>

#define ASK_AGAIN SPAN_S(1)

struct asked_list {
    struct master *master; /* NULL: it was closed */
    bool is_stale;         /* something has changed since */
};

/* ---- Who there is ---------------------------------------------------------------------------- */

static void names_free(char **names)
{
    for (size_t i = 0; names && names[i]; i++) {
        free(names[i]);
    }
    free(names);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, each once. NULL: out of memory. *ret_twin: one that several have, of these; or NULL. */
static char **names_of(const struct baton_member *members, size_t count, size_t *ret_count,
                       const char **ret_twin)
{
    char **names = calloc(count + 1, sizeof(*names));
    size_t used = 0, kept = 0;

    for (size_t i = 0; names && i < count; i++) {
        if (members[i].is_alive && members[i].kind != BATON_MEMBER_WITNESS) {
            names[used] = strdup(members[i].name);
            if (!names[used++]) {
                names_free(names);
                return NULL;
            }
        }
    }
    if (used > 0) {
        qsort(names, used, sizeof(*names), compare);
    }
    *ret_twin = NULL;
    for (size_t i = 0; i < used; i++) {
        if (kept > 0 && strcmp(names[i], names[kept - 1]) == 0) {
            *ret_twin = names[kept - 1];
            free(names[i]);
        } else {
            names[kept++] = names[i];
        }
        names[i] = i < kept ? names[i] : NULL;
    }
    *ret_count = kept;
    return names;
}

static bool is_same(char *const *a, char *const *b)
{
    for (; a && *a && *b && strcmp(*a, *b) == 0; a++, b++) {
    }
    return a && !*a && !*b;
}

/* The leader reports two processes with one name, once. A process that was killed and started
 * again is twice among the members until its old entry ends, so the leader waits for longer. */
static void look_for_twins(struct master *master, const char *twin)
{
    instant now = clock_now();

    if (!twin) {
        master->twins_since = INSTANT_NEVER;
        master->has_told_twins = false;
    } else if (master->twins_since.ns == INSTANT_NEVER.ns) {
        master->twins_since = now;
    } else if (!master->has_told_twins && master->epoch != 0 &&
               instant_since(now, master->twins_since).ns > master->config.twins_last.ns) {
        master->has_told_twins = true;
        master_tell(master, "process-twice",
                    json_pack("{s:s,s:s}", "process", twin, "reason",
                              "two processes have this name; give each another --node"));
    }
}

static void take_members(struct master *master, const struct baton_member *members, size_t count)
{
    size_t name_count;
    const char *twin;
    char **names = names_of(members, count, &name_count, &twin);

    if (names) {
        look_for_twins(master, twin);
    }
    if (!names || name_count == 0 || is_same(master->processes, names)) {
        names_free(names);
        return;
    }
    names_free(master->processes);
    master->processes = names;
    master->process_count = name_count;
    master->is_owners_due = true;
    master_touch(master);
}

/* Without a list there is no plan, so the reason is told. */
static void ask_again(struct master *master, const char *reason)
{
    struct baton_error error;

    if (master->epoch == 0) {
        return; /* who leads next asks */
    }
    master->ask_at = instant_add(clock_now(), ASK_AGAIN);
    (void)error_set(&error, BATON_EUNAVAILABLE, "the fleet's processes cannot be listed: %s",
                    reason);
    master_complain(master, &error);
    master_touch(master);
}

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    struct asked_list *asked = userdata;
    struct master *master = asked->master;
    bool is_stale = asked->is_stale;

    free(asked);
    if (!master) {
        return;
    }
    master->asked = NULL;
    if (code == BATON_OK) {
        take_members(master, members, count);
    } else {
        ask_again(master, baton_strerror(code));
    }
    if (is_stale) {
        processes_ask(master);
    }
}

void processes_ask(struct master *master)
{
    struct asked_list *asked;
    struct baton_error error;

    master->ask_at = INSTANT_NEVER;
    if (master->asked) {
        master->asked->is_stale = true;
        return;
    }
    if (!master->candidacy.election) {
        return;
    }
    asked = calloc(1, sizeof(*asked));
    if (!asked) {
        ask_again(master, "out of memory");
        return;
    }
    asked->master = master;
    master->asked = asked;
    if (members_list(master->candidacy.election, on_members, asked, &error) != BATON_OK) {
        master->asked = NULL;
        free(asked);
        ask_again(master, error.message);
    }
}

void processes_fini(struct master *master)
{
    if (master->asked) {
        master->asked->master = NULL;
        master->asked = NULL;
    }
    names_free(master->processes);
    master->processes = NULL;
}

/* ---- Who owns what --------------------------------------------------------------------------- */

static int32_t process_of(const struct master *master, const char *name)
{
    for (size_t i = 0; name && i < master->process_count; i++) {
        if (strcmp(master->processes[i], name) == 0) {
            return (int32_t)i;
        }
    }
    return SPREAD_NONE;
}

struct ownership {
    int32_t *numbers; /* memory of all: */
    int32_t *first, *second, *owner, *next_first, *next_second;
};

static bool ownership_init(struct ownership *ret, size_t count)
{
    ret->numbers = calloc(5 * count + 1, sizeof(*ret->numbers));
    ret->first = ret->numbers;
    ret->second = ret->numbers + count;
    ret->owner = ret->numbers + 2 * count;
    ret->next_first = ret->numbers + 3 * count;
    ret->next_second = ret->numbers + 4 * count;
    return ret->numbers != NULL;
}

static void read_today(const struct master *master, const struct survey *survey,
                       const json_t *workers, struct ownership *ret)
{
    for (size_t i = 0; i < survey->count; i++) {
        const char *id = survey->workers[i].id;
        const json_t *names = json_object_get(workers, id);
        const struct worker_live *live = worker_table_find(master->config.table, id);
        ret->first[i] = process_of(master, json_string_value(json_array_get(names, 0)));
        ret->second[i] = process_of(master, json_string_value(json_array_get(names, 1)));
        ret->owner[i] = process_of(master, live && live->is_online ? live->process : NULL);
    }
}

static json_t *owners_json(const struct master *master, const struct survey *survey,
                           const struct ownership *ownership)
{
    json_t *workers = json_object();

    for (size_t i = 0; i < survey->count; i++) {
        int32_t first = ownership->next_first[i], second = ownership->next_second[i];
        json_t *names = second == SPREAD_NONE ? json_pack("[s]", master->processes[first])
                                              : json_pack("[s,s]", master->processes[first],
                                                          master->processes[second]);
        if (json_object_set_new(workers, survey->workers[i].id, names) != 0) {
            json_decref(workers);
            return NULL;
        }
    }
    return json_pack("{s:I,s:o}", "epoch", (json_int_t)master->epoch, "workers", workers);
}

/* A new master writes them in any case: they say its epoch. */
int processes_own(struct master *master, const struct survey *survey, struct round *round)
{
    uint64_t revision = 0;
    const json_t *before = fleet_state_owners(master->config.state, &revision);
    const json_t *workers = json_object_get(before, "workers");
    struct ownership ownership;
    json_t *json = NULL;
    int code = BATON_OK;

    if (!master->is_owners_due) {
        return BATON_OK;
    }
    if (!ownership_init(&ownership, survey->count)) {
        return BATON_ENOMEM;
    }
    read_today(master, survey, workers, &ownership);
    const struct spread_problem problem = {master->process_count, survey->count, ownership.first,
                                           ownership.second, ownership.owner};
    code = spread_solve(&problem, ownership.next_first, ownership.next_second);
    if (code == BATON_OK) {
        json = owners_json(master, survey, &ownership);
    }
    free(ownership.numbers);
    master->is_owners_due = code != BATON_OK;
    if (json && json_equal(json_object_get(json, "workers"), workers) &&
        json_equal(json_object_get(json, "epoch"), json_object_get(before, "epoch"))) {
        json_decref(json);
        return code;
    }
    return code != BATON_OK ? code : round_add(round, STEP_TAKES, "owners", json, false, revision);
}
