/* A file made the state: what differs is written, so many keys at once.
 *
 *   compare ─▶ operations, in phases: models │ cameras │ displays │ subscriptions │ deletions …
 *                  │
 *              attempt ──put──▶ done │ conflict: the cache has the key anew ─▶ attempt
 */
#include "fleet/state/state_int.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

struct operation {
    struct fleet_object *object; /* a reference: to write, or `is_deletion` */
    bool is_deletion;
    unsigned tries;
};

struct apply {
    struct fleet_state *state;
    struct operation *operations;
    size_t count, begun, under_way, written;
    bool is_pumping;
    fleet_progress_cb progress;
    fleet_applied_cb done;
    void *userdata;
    struct fleet_apply_result result;
    struct baton_error error; /* of the first failure */
};

struct attempt {
    struct apply *apply;
    size_t operation;
    bool is_creation;
};

/* ---- Comparing ------------------------------------------------------------------------------- */

static int compare_objects(const void *a, const void *b)
{
    const struct fleet_object *const *one = a, *const *other = b;

    if ((*one)->kind != (*other)->kind) {
        return (*one)->kind < (*other)->kind ? -1 : 1;
    }
    return strcmp((*one)->id, (*other)->id);
}

/* Sorted references; NULL: out of memory. */
static struct fleet_object **sorted(const struct fleet_file *file)
{
    struct fleet_object **objects = calloc(file->count + 1, sizeof(struct fleet_object *));

    if (objects && file->count > 0) {
        memcpy((void *)objects, (const void *)file->objects,
               file->count * sizeof(struct fleet_object *));
        qsort((void *)objects, file->count, sizeof(struct fleet_object *), compare_objects);
    }
    return objects;
}

/* What the file does to each object: `each` gets those that are written (before NULL: new), then
 * those that are deleted (after NULL), in the order of the phases. */
typedef void (*differ_cb)(void *userdata, const struct fleet_object *before,
                          const struct fleet_object *after);

static void compare_deletions(const struct fleet_state *state, struct fleet_object *const *objects,
                              size_t count, differ_cb each, void *userdata)
{
    for (int kind = FLEET_SUBSCRIPTION; kind >= FLEET_MODEL; kind--) {
        const struct order *order = &state->cache.orders[kind];
        for (size_t i = 0; i < order->count; i++) {
            struct fleet_object *object = order->of[i]->value->object;
            if (!bsearch((void *)&object, (const void *)objects, count,
                         sizeof(struct fleet_object *), compare_objects)) {
                each(userdata, object, NULL);
            }
        }
    }
}

static int compare(const struct fleet_state *state, const struct fleet_file *file, bool prunes,
                   differ_cb each, void *userdata)
{
    struct fleet_object **objects = sorted(file);

    if (!objects) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < file->count; i++) {
        each(userdata, fleet_state_object(state, objects[i]->kind, objects[i]->id, NULL),
             objects[i]);
    }
    if (prunes) {
        compare_deletions(state, objects, file->count, each, userdata);
    }
    free((void *)objects);
    return BATON_OK;
}

static void count_difference(void *userdata, const struct fleet_object *before,
                             const struct fleet_object *after)
{
    struct fleet_apply_result *result = userdata;

    if (!after) {
        result->deleted++;
    } else if (!before) {
        result->created++;
    } else if (fleet_object_equal(before, after)) {
        result->same++;
    } else {
        result->changed++;
    }
}

int fleet_state_compare(const struct fleet_state *state, const struct fleet_file *file, bool prunes,
                        struct fleet_apply_result *ret, struct baton_error *reterr)
{
    struct fleet_apply_result result = {0};

    if (!state->is_ready) {
        return error_set(reterr, BATON_EBUSY, "fleet \"%s\": the state is not loaded yet",
                         state->name);
    }
    if (compare(state, file, prunes, count_difference, &result) != BATON_OK) {
        return error_set(reterr, BATON_ENOMEM, "fleet \"%s\": out of memory", state->name);
    }
    *ret = result;
    return BATON_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void apply_free(struct apply *apply)
{
    for (size_t i = 0; i < apply->count; i++) {
        fleet_object_unref(apply->operations[i].object);
    }
    free(apply->operations);
    free(apply);
}

static void fail(struct apply *apply, int code, const struct baton_error *error)
{
    if (apply->error.code != BATON_OK) {
        return;
    }
    if (error && error->code == code) {
        apply->error = *error;
    } else {
        (void)error_set(&apply->error, code, "%s", baton_strerror(code));
    }
}

static void attempt(struct apply *apply, size_t operation);
static void pump(struct apply *apply);

static void note_written(const struct attempt *attempt)
{
    struct apply *apply = attempt->apply;

    if (apply->operations[attempt->operation].is_deletion) {
        apply->result.deleted++;
    } else if (attempt->is_creation) {
        apply->result.created++;
    } else {
        apply->result.changed++;
    }
    apply->written++;
    if (apply->progress) {
        apply->progress(apply->userdata, apply->written, apply->count);
    }
}

/* A write that timed out may have been carried out: the next attempt finds that out. */
static void on_written(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct attempt ended = *(struct attempt *)userdata;
    struct apply *apply = ended.apply;
    (void)revision;

    free(userdata);
    apply->under_way--;
    if (code == BATON_OK) {
        note_written(&ended);
    } else if ((code == BATON_ECONFLICT || code == BATON_ETIMEDOUT) &&
               apply->operations[ended.operation].tries < FLEET_APPLY_TRIES &&
               apply->error.code == BATON_OK) {
        attempt(apply, ended.operation);
    } else {
        fail(apply, code, error);
    }
    pump(apply);
}

static int put(struct apply *apply, const struct operation *operation, uint64_t revision,
               struct attempt *attempt, struct baton_error *reterr)
{
    const struct fleet_object *object = operation->object;

    return operation->is_deletion
               ? fleet_state_delete(apply->state, object->kind, object->id, revision, on_written,
                                    attempt, reterr)
               : fleet_state_put(apply->state, object, revision, on_written, attempt, reterr);
}

/* By what the cache has of the key now. */
static void attempt(struct apply *apply, size_t index)
{
    struct operation *operation = &apply->operations[index];
    struct attempt *attempt;
    struct baton_error error = {0};
    uint64_t revision = 0;
    const struct fleet_object *present =
        fleet_state_object(apply->state, operation->object->kind, operation->object->id, &revision);
    int code = BATON_ENOMEM;

    operation->tries++;
    if (operation->is_deletion ? !present
                               : present && fleet_object_equal(present, operation->object)) {
        apply->result.same += !operation->is_deletion; /* another one has done it */
        return;
    }
    attempt = malloc(sizeof(*attempt));
    if (attempt) {
        *attempt = (struct attempt){apply, index, present == NULL};
        apply->under_way++;
        code = put(apply, operation, revision, attempt, &error);
        apply->under_way -= code != BATON_OK;
    }
    if (code != BATON_OK) {
        free(attempt);
        fail(apply, code, &error);
    }
}

static int phase_of(const struct operation *operation)
{
    int kind = (int)operation->object->kind;

    return operation->is_deletion ? 2 * FLEET_KINDS - 1 - kind : kind;
}

/* Whether the next operation may begin: those of an earlier phase have ended. */
static bool may_begin(const struct apply *apply)
{
    const struct operation *next = &apply->operations[apply->begun];

    return apply->error.code == BATON_OK && apply->begun < apply->count &&
           (apply->under_way == 0 ||
            (apply->under_way < FLEET_APPLY_WINDOW && phase_of(next) == phase_of(next - 1)));
}

static void pump(struct apply *apply)
{
    if (apply->is_pumping) {
        return;
    }
    apply->is_pumping = true;
    while (may_begin(apply)) {
        attempt(apply, apply->begun++);
    }
    apply->is_pumping = false;
    if (apply->under_way == 0) {
        apply->done(apply->userdata, apply->error.code, &apply->result, &apply->error);
        apply_free(apply);
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void add_operation(void *userdata, const struct fleet_object *before,
                          const struct fleet_object *after)
{
    struct apply *apply = userdata;
    const struct fleet_object *object = after ? after : before;

    if (before && after && fleet_object_equal(before, after)) {
        apply->result.same++;
        return;
    }
    apply->operations[apply->count++] = (struct operation){
        .object = fleet_object_ref((struct fleet_object *)object), .is_deletion = !after};
}

int fleet_state_apply(struct fleet_state *state, const struct fleet_file *file, bool prunes,
                      fleet_progress_cb progress, fleet_applied_cb done, void *userdata,
                      struct baton_error *reterr)
{
    struct apply *apply;
    size_t most = file->count;

    if (!state->is_ready || state->is_closed) {
        return error_set(reterr, BATON_EBUSY, "fleet \"%s\": the state is not loaded yet",
                         state->name);
    }
    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        most += state->cache.orders[kind].count;
    }
    apply = calloc(1, sizeof(*apply));
    if (!apply || !(apply->operations = calloc(most + 1, sizeof(*apply->operations))) ||
        compare(state, file, prunes, add_operation, apply) != BATON_OK) {
        if (apply) {
            apply_free(apply);
        }
        return error_set(reterr, BATON_ENOMEM, "fleet \"%s\": out of memory", state->name);
    }
    apply->state = state;
    apply->progress = progress;
    apply->done = done;
    apply->userdata = userdata;
    pump(apply);
    return BATON_OK;
}
