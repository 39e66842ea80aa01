#include "softbody/master.h"

#include "base/json_bytes.h"
#include "softbody/scene.h"
#include "softbody/task.h"

#include <baton/work.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TEXT_MAX = 64,
    EPOCH_BYTES = 8,
    TASK_BYTES_MAX = 8 + 2 * BATCH_BYTES_MAX,
    PATIENCE_MS = 250
};

struct play {
    const struct master *master;
    uint64_t epoch;      /* of this leadership */
    uint64_t revision;   /* of the checkpoint */
    struct lockstep run; /* since the checkpoint was read */
    char key[TEXT_MAX];  /* of the checkpoint */
};

static int check_leads(const struct play *play, struct baton_error *reterr)
{
    uint64_t epoch;

    if (*play->master->ends || !baton_leadership(play->master->election, &epoch) ||
        epoch != play->epoch) {
        return error_set(reterr, BATON_ELOST, "no longer the master");
    }
    return 0;
}

/* ---- The checkpoint -------------------------------------------------------------------------- */

static int take_checkpoint(const struct play *play, const struct baton_value *value,
                           struct batch *ret, struct baton_error *reterr)
{
    struct reader reader = reader_of(value->data, value->bytes);
    uint64_t epoch = reader_u64(&reader);

    if (!reader.failed && epoch > play->epoch) {
        return error_set(reterr, BATON_ELOST, "a later master has written the checkpoint");
    }
    return batch_take(ret, reader.data, reader.bytes, reterr);
}

/* The scene's beginning if there is no checkpoint. */
static int read_checkpoint(struct play *play, struct batch *ret, struct baton_error *reterr)
{
    struct baton_value *value = NULL;
    int code = baton_get(play->master->baton, play->key, &value, reterr);

    if (code == BATON_ENOENT) {
        play->revision = 0;
        scene_make(play->master->scene, ret);
        return 0;
    }
    code = code ? code : take_checkpoint(play, value, ret, reterr);
    if (code == 0) {
        play->revision = value->revision;
    }
    baton_values_free(value, 1);
    return code;
}

static int write_checkpoint(struct play *play, struct baton_error *reterr)
{
    struct buffer bytes;
    int code;

    buffer_init(&bytes, EPOCH_BYTES + BATCH_BYTES_MAX);
    buffer_put_u64(&bytes, play->epoch);
    batch_put(&play->run.now, &bytes);
    code = bytes.failed
               ? error_set(reterr, BATON_ENOMEM, "out of memory for a checkpoint")
               : baton_put_revision(play->master->baton, play->key, bytes.data, bytes.bytes,
                                    play->revision, 0, &play->revision, reterr);
    buffer_fini(&bytes);
    return code;
}

/* ---- A round --------------------------------------------------------------------------------- */

/* The round's items as the pool reads them, for free(); NULL when out of memory. */
static char *items_of(const struct lockstep *run)
{
    json_t *items = json_array();
    struct buffer task;
    char *text = NULL;
    bool is_complete = items != NULL;

    buffer_init(&task, TASK_BYTES_MAX);
    for (uint32_t batch = 0; is_complete && batch < run->batches; batch++) {
        json_t *item = json_object();

        buffer_clear(&task);
        task_put(run, batch, &task);
        is_complete = !task.failed && json_put_bytes(item, "body", task.data, task.bytes) &&
                      json_array_append(items, item) == 0;
        json_decref(item);
    }
    if (is_complete) {
        text = json_dumps(items, JSON_COMPACT);
    }
    buffer_fini(&task);
    json_decref(items);
    return text;
}

static int submit(const struct play *play, struct baton_work_submission **ret,
                  struct baton_error *reterr)
{
    char name[TEXT_MAX];
    char *items = items_of(&play->run);
    int code;

    (void)snprintf(name, sizeof(name), "scene-%" PRIu32 "-frame-%" PRIu64, play->master->scene,
                   play->run.now.frame);
    code =
        items ? baton_work_submit(play->master->baton, play->master->pool, name, items, ret, reterr)
              : error_set(reterr, BATON_ENOMEM, "out of memory for a round");
    free(items);
    return code;
}

static int await(const struct play *play, const struct baton_work_submission *given,
                 struct baton_work_result **ret, struct baton_error *reterr)
{
    const struct master *master = play->master;
    int code;

    do {
        code = check_leads(play, reterr);
        code = code ? code
                    : baton_work_wait(master->baton, master->pool, (const char *const *)given->ids,
                                      given->count, PATIENCE_MS, ret, reterr);
    } while (code == BATON_ETIMEDOUT);
    return code;
}

static int take_all(struct play *play, const struct baton_work_result *results,
                    struct baton_error *reterr)
{
    uint32_t batches = play->run.batches;
    int code = 0;

    for (uint32_t batch = 0; code == 0 && batch < batches; batch++) {
        code = results[batch].end != BATON_WORK_COMPLETED
                   ? error_set(reterr, BATON_EPROTO, "%s: no result, code %d", results[batch].id,
                               results[batch].code)
                   : lockstep_take(&play->run, batch, results[batch].output, results[batch].bytes,
                                   reterr);
    }
    return code;
}

static int play_round(struct play *play, struct baton_error *reterr)
{
    struct baton_work_submission *given = NULL;
    struct baton_work_result *results = NULL;
    int code = submit(play, &given, reterr);

    if (code == 0) {
        code = await(play, given, &results, reterr);
        code = code ? code : take_all(play, results, reterr);
        baton_work_results_free(results, given->count);
        baton_work_submission_free(given);
    }
    code = code ? code : write_checkpoint(play, reterr);
    if (code == 0) {
        (void)printf("frame %" PRIu64 "\n", play->run.now.frame);
    }
    return code;
}

int master_play(const struct master *master, uint64_t *ret_hash, struct baton_error *reterr)
{
    struct play *play = calloc(1, sizeof(*play));
    struct batch *all = calloc(1, sizeof(*all));
    int code = play && all ? 0 : error_set(reterr, BATON_ENOMEM, "out of memory for a scene");

    if (code == 0) {
        play->master = master;
        play->epoch = baton_epoch(master->election);
        (void)snprintf(play->key, sizeof(play->key), "softbody/scene-%" PRIu32, master->scene);
        code = check_leads(play, reterr);
    }
    code = code ? code : read_checkpoint(play, all, reterr);
    code = code ? code
                : lockstep_init(&play->run, all, master->batches, master->frames_a_round, reterr);
    while (code == 0 && play->run.now.frame < master->frames) {
        code = play_round(play, reterr);
    }
    if (code == 0) {
        *ret_hash = batch_hash(&play->run.now);
    }
    if (play) {
        lockstep_fini(&play->run);
    }
    free(play);
    free(all);
    return code;
}
