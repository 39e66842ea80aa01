#include "detector/model/pipeline_int.h"

#include "base/error.h"
#include "base/json_read.h"
#include "protocol/protocol.h"

#include <string.h>

#define WORD(symbol, name) name,
static const char *const reports[] = {PIPELINE_REPORTS(WORD)};
#undef WORD

static const char *const root_keys[] = {"version", "models", "stages", "tracker", NULL};
static const char *const tracker_keys[] = {"iou", "maxAgeMs", "report", "everyMs", NULL};

static int read_version(const struct node *root, struct baton_error *reterr)
{
    int64_t version;
    int rc =
        json_read_integer(root->json, "", "version", INT64_MIN, INT64_MAX, NULL, &version, reterr);

    if (rc == 0 && version != PIPELINE_VERSION) {
        return error_set(reterr, BATON_EPROTO,
                         "version is %lld: must be %d, the only one that this program reads",
                         (long long)version, PIPELINE_VERSION);
    }
    return rc;
}

static int read_every(struct pipeline_track *track, const struct node *node,
                      struct baton_error *reterr)
{
    int rc = node_int(node, "everyMs", 1, PIPELINE_EVERY_MAX_MS, &track->every_ms, reterr);

    if (rc == 0 && (track->report == REPORT_EVERY) != (track->every_ms > 0)) {
        return track->report == REPORT_EVERY
                   ? error_set(reterr, BATON_EPROTO,
                               "tracker.everyMs is missing: must be 1 to %d, as report is every",
                               PIPELINE_EVERY_MAX_MS)
                   : error_set(reterr, BATON_EPROTO,
                               "tracker.everyMs is for report every; report is %s: remove it",
                               reports[track->report]);
    }
    return rc;
}

static int read_tracker(struct pipeline *pipeline, const struct node *root,
                        struct baton_error *reterr)
{
    struct pipeline_track *track = &pipeline->track;
    json_t *json = json_object_get(root->json, "tracker");
    struct node node;
    int report = REPORT_ONCE;
    int rc;

    if (json == NULL || json_is_null(json)) {
        return 0;
    }
    *track = (struct pipeline_track){.is_on = true, .iou = 0.2F, .max_age_ms = PIPELINE_AGE_MS};
    rc = node_init(&node, root, "tracker", json, reterr);
    rc = rc ? rc : node_check_keys(&node, tracker_keys, reterr);
    rc = rc ? rc : node_float(&node, "iou", 0.01, 1, &track->iou, reterr);
    rc = rc ? rc : node_int(&node, "maxAgeMs", 1, PIPELINE_AGE_MAX_MS, &track->max_age_ms, reterr);
    rc = rc ? rc : node_word(&node, "report", reports, REPORT_COUNT, &report, reterr);
    track->report = (enum pipeline_report)report;
    return rc ? rc : read_every(track, &node, reterr);
}

static bool is_used(const struct pipeline *pipeline, size_t model)
{
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        if (pipeline->stages[i].model == model) {
            return true;
        }
    }
    return false;
}

static bool is_source(const struct pipeline *pipeline, size_t stage)
{
    for (size_t i = stage + 1; i < pipeline->stage_count; i++) {
        if (pipeline->stages[i].from == (int)stage) {
            return true;
        }
    }
    return false;
}

/* Counts the names of fields; a field that several stages fill counts once. */
static size_t count_names(const struct pipeline *pipeline)
{
    const char *names[PIPELINE_STAGES_MAX * PIPELINE_FIELDS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < pipeline->stage_count; i++) {
        for (size_t j = 0; j < pipeline->stages[i].field_count; j++) {
            const char *name = pipeline->stages[i].fields[j].name;
            size_t at = 0;
            while (at < count && strcmp(names[at], name) != 0) {
                at++;
            }
            names[at] = name;
            count += at == count;
        }
    }
    return count;
}

static int check_tracks(const struct pipeline *pipeline, struct baton_error *reterr)
{
    for (size_t i = 0; !pipeline->track.is_on && i < pipeline->stage_count; i++) {
        for (size_t j = 0; j < pipeline->stages[i].field_count; j++) {
            if (pipeline->stages[i].fields[j].value == VALUE_TRACK) {
                return error_set(reterr, BATON_EPROTO,
                                 "stages[%zu].fields.%s is track: add \"tracker\": {}, without "
                                 "which objects have no numbers",
                                 i, pipeline->stages[i].fields[j].name);
            }
        }
    }
    return 0;
}

/* Checks what no part shows alone, such as a model that no stage uses. */
static int check_whole(const struct pipeline *pipeline, struct baton_error *reterr)
{
    size_t names = count_names(pipeline);

    for (size_t i = 0; i < pipeline->model_count; i++) {
        if (!is_used(pipeline, i)) {
            return error_set(reterr, BATON_EPROTO,
                             "models.%s is used by no stage: remove it, or name it in one",
                             pipeline->models[i].name);
        }
    }
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        if (pipeline->stages[i].field_count == 0 && !is_source(pipeline, i)) {
            return error_set(reterr, BATON_EPROTO,
                             "stages[%zu] (\"%s\") fills no field and no stage is from it: give "
                             "it \"fields\", or remove it",
                             i, pipeline->stages[i].name);
        }
    }
    if (names > PROTOCOL_FIELDS_MAX) {
        return error_set(reterr, BATON_EPROTO, "stages fill %zu fields: at most %d are reported",
                         names, PROTOCOL_FIELDS_MAX);
    }
    return check_tracks(pipeline, reterr);
}

int pipeline_parse(struct pipeline *pipeline, const char *bytes, size_t count,
                   struct baton_error *reterr)
{
    struct pipeline fresh = {0};
    struct node root = {0};
    int rc =
        json_read_object(bytes, count, PIPELINE_BYTES_MAX, PIPELINE_DEPTH_MAX, &root.json, reterr);

    if (rc == 0) {
        rc = node_check_keys(&root, root_keys, reterr);
        rc = rc ? rc : read_version(&root, reterr);
        rc = rc ? rc : models_read(&fresh, &root, reterr);
        rc = rc ? rc : stages_read(&fresh, &root, reterr);
        rc = rc ? rc : read_tracker(&fresh, &root, reterr);
        rc = rc ? rc : check_whole(&fresh, reterr);
        json_decref(root.json);
    }
    if (rc != 0) {
        pipeline_fini(&fresh);
        (void)error_wrap(reterr, "pipeline.json");
        return rc;
    }
    *pipeline = fresh;
    return 0;
}
