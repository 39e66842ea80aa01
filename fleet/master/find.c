/* Workers that discovery finds become keys of the state. One that it finds no more goes once nobody
 * hears of it: an answer of a name server may lack a worker that lives. */
#include "fleet/master/master_int.h"

#include "base/error.h"
#include "fleet/workers/discovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 16 + DISCOVERY_ID_MAX };

struct find {
    struct master *master;
    struct discovery *discovery;
    struct discovered *found; /* sorted by id; NULL: not known yet */
    size_t count;
    bool is_whole; /* no worker is missing only because a name was never resolved */
};

static void on_change(void *userdata, const struct discovered *workers, size_t count, bool is_whole)
{
    struct find *find = userdata;
    struct discovered *copy = calloc(count + 1, sizeof(*copy));

    if (!copy) {
        return; /* what was found before stays */
    }
    memcpy(copy, workers, count * sizeof(*copy));
    free(find->found);
    find->found = copy;
    find->count = count;
    find->is_whole = is_whole;
    master_touch(find->master);
}

static void on_failed(void *userdata, const char *url, const struct baton_error *error)
{
    struct find *find = userdata;

    master_tell(find->master, "discovery-failed",
                json_pack("{s:s,s:s}", "url", url, "reason", error->message));
}

int find_open(struct find **ret, struct master *master, struct baton_error *reterr)
{
    const struct master_config *config = &master->config;
    struct find *find;
    int code;

    if (config->worker_count == 0) {
        return BATON_OK;
    }
    find = calloc(1, sizeof(*find));
    if (!find) {
        return error_set(reterr, BATON_ENOMEM, "discovery: out of memory");
    }
    find->master = master;
    const struct discovery_config discovery = {.loop =
                                                   member_loop(fleet_state_member(config->state)),
                                               .urls = config->worker_urls,
                                               .count = config->worker_count,
                                               .every = config->resolve_every,
                                               .on_change = on_change,
                                               .on_failed = on_failed,
                                               .userdata = find};
    code = discovery_open(&find->discovery, &discovery, reterr);
    if (code != BATON_OK) {
        free(find);
        return code;
    }
    *ret = find;
    return BATON_OK;
}

void find_close(struct find *find)
{
    if (find) {
        discovery_close(find->discovery);
        free(find->found);
        free(find);
    }
}

/* ---- Into the state -------------------------------------------------------------------------- */

static int compare(const void *id, const void *found)
{
    return strcmp(id, ((const struct discovered *)found)->id);
}

static bool is_found(const struct find *find, const char *id)
{
    return find->count > 0 && bsearch(id, find->found, find->count, sizeof(*find->found), compare);
}

/* Records that people have registered or declared in a file are theirs. A record keeps what people
 * have set. A worker that is registered under another id is there: two
 * records would be two backends that take it from one another. */
static int add_record(const struct fleet_state *state, const struct discovered *found,
                      struct round *round)
{
    const struct fleet_worker *record = fleet_state_worker(state, found->id);
    const struct fleet_worker *before = fleet_state_worker_key(state, found->id);
    char key[KEY_MAX];
    json_t *json;

    if (!record && fleet_state_worker_at(state, found->url)) {
        return BATON_OK;
    }
    if (record &&
        (!fleet_worker_is_discovered(record) ||
         (strcmp(record->url, found->url) == 0 && strcmp(record->source, found->source) == 0))) {
        return BATON_OK;
    }
    (void)snprintf(key, sizeof(key), "worker/%s", found->id);
    json = record ? fleet_worker_json(record) : json_object();
    (void)json_object_set_new(json, "url", json_string(found->url));
    (void)json_object_set_new(json, "source", json_string(found->source));
    return round_add(round, STEP_TAKES, key, json, false, before ? before->revision : 0);
}

static int delete_record(const struct fleet_worker *record, struct round *round)
{
    char key[KEY_MAX];

    (void)snprintf(key, sizeof(key), "worker/%s", record->id);
    return round_add(round, STEP_TAKES, key, NULL, true, record->revision);
}

int find_register(const struct master *master, const struct survey *survey, struct round *round)
{
    const struct find *find = master->find;
    int code = BATON_OK;

    if (!find || !find->found) {
        return BATON_OK;
    }
    for (size_t i = 0; code == BATON_OK && i < find->count; i++) {
        code = add_record(master->config.state, &find->found[i], round);
    }
    for (size_t i = 0; find->is_whole && code == BATON_OK && i < survey->count; i++) {
        const struct fleet_worker *record = survey->records[i];
        if (!survey->workers[i].is_online && fleet_worker_is_discovered(record) &&
            !is_found(find, record->id)) {
            code = delete_record(record, round);
        }
    }
    return code;
}
