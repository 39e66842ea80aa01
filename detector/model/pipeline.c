/* The whole of pipeline.json; pipeline_models.c and _stages.c read its parts. */
#include "detector/model/pipeline_int.h"

#include "base/error.h"
#include "base/json_read.h"
#include "protocol/protocol.h"

#include <stdlib.h>
#include <string.h>

static const char *const reports[] = {
    [REPORT_ONCE] = "once", [REPORT_EVERY] = "every", [REPORT_CHANGE] = "change"};

static const char *const root_keys[] = {"version", "models", "stages", "tracker", NULL};
static const char *const tracker_keys[] = {"iou", "maxAgeMs", "report", "everyMs", NULL};

static void read_version(const struct node *root)
{
    int version = node_int(root, "version", INT_MIN + 1, INT_MAX, NODE_REQUIRED);

    if (version != PIPELINE_VERSION) {
        node_fail(root, "version is %d: must be %d, the only one that this program reads", version,
                  PIPELINE_VERSION);
    }
}

static void read_tracker(struct pipeline_track *track, const struct node *root)
{
    json_t *json = json_object_get(root->json, "tracker");
    struct node node;

    if (json == NULL || json_is_null(json)) {
        return;
    }
    node_init(&node, root, "tracker", json, tracker_keys);
    track->is_on = true;
    track->iou = node_float(&node, "iou", 0.01, 1, 0.2);
    track->max_age_ms = node_int(&node, "maxAgeMs", 1, PIPELINE_AGE_MAX_MS, PIPELINE_AGE_MS);
    track->report =
        (enum pipeline_report)node_word(&node, "report", reports, REPORT_COUNT, REPORT_ONCE);
    track->every_ms = node_int(&node, "everyMs", 1, PIPELINE_EVERY_MAX_MS, 0);
    if (track->report == REPORT_EVERY && track->every_ms == 0) {
        node_fail(&node, "everyMs is missing: must be 1 to %d, as report is every",
                  PIPELINE_EVERY_MAX_MS);
    } else if (track->report != REPORT_EVERY && track->every_ms > 0) {
        node_fail(&node, "everyMs is for report every; report is %s: remove it",
                  reports[track->report]);
    }
}

/* Counts the names of fields; a field that several stages fill counts once. */
static size_t count_names(const struct pipeline *pipeline)
{
    json_t *names = json_object();
    size_t count;

    for (size_t i = 0; i < pipeline->stage_count; i++) {
        for (size_t j = 0; j < pipeline->stages[i].field_count; j++) {
            (void)json_object_set_new(names, pipeline->stages[i].fields[j].name, json_true());
        }
    }
    count = json_object_size(names);
    json_decref(names);
    return count;
}

static void check_stage(const struct pipeline *pipeline, size_t index, bool is_source,
                        const struct node *root)
{
    const struct pipeline_stage *stage = &pipeline->stages[index];

    if (stage->field_count == 0 && !is_source) {
        node_fail(root,
                  "stages[%zu] (\"%s\") fills no field and no stage is from it: give it "
                  "\"fields\", or remove it",
                  index, stage->name);
    }
    for (size_t i = 0; !pipeline->track.is_on && i < stage->field_count; i++) {
        if (stage->fields[i].value == VALUE_TRACK) {
            node_fail(root,
                      "stages[%zu].fields.%s is track: add \"tracker\": {}, without which objects "
                      "have no numbers",
                      index, stage->fields[i].name);
        }
    }
}

/* Checks what no part shows alone, such as a model that no stage uses. */
static void check_whole(const struct pipeline *pipeline, const struct node *root)
{
    bool is_used[PIPELINE_MODELS_MAX] = {false}, is_source[PIPELINE_STAGES_MAX] = {false};
    size_t names = count_names(pipeline);

    for (size_t i = 0; i < pipeline->stage_count; i++) {
        const struct pipeline_stage *stage = &pipeline->stages[i];
        is_used[stage->model] = true;
        if (stage->from != PIPELINE_FROM_FRAME) {
            is_source[stage->from] = true;
        }
    }
    for (size_t i = 0; i < pipeline->model_count; i++) {
        if (!is_used[i]) {
            node_fail(root, "models.%s is used by no stage: remove it, or name it in one",
                      pipeline->models[i].name);
        }
    }
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        check_stage(pipeline, i, is_source[i], root);
    }
    if (names > PROTOCOL_FIELDS_MAX) {
        node_fail(root, "stages fill %zu fields: at most %d are reported", names,
                  PROTOCOL_FIELDS_MAX);
    }
}

void pipeline_fini(struct pipeline *pipeline)
{
    if (pipeline == NULL) {
        return;
    }
    for (size_t i = 0; i < pipeline->model_count; i++) {
        free(pipeline->models[i].classes);
    }
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        free(pipeline->stages[i].fields);
        free(pipeline->stages[i].regions);
        free(pipeline->stages[i].classes);
    }
    free(pipeline->models);
    free(pipeline->stages);
    json_decref(pipeline->json);
    *pipeline = (struct pipeline){0};
}

int pipeline_parse(struct pipeline *pipeline, const char *bytes, size_t count,
                   struct baton_error *reterr)
{
    struct pipeline fresh = {0};
    struct reading reading = {.error = reterr};
    struct node root = {.reading = &reading};

    reading.code =
        json_read_object(bytes, count, PIPELINE_BYTES_MAX, PIPELINE_DEPTH_MAX, &root.json, reterr);
    if (reading.code == 0) {
        node_check_keys(&root, root_keys);
        read_version(&root);
        models_read(&fresh, &root);
        stages_read(&fresh, &root);
        read_tracker(&fresh.track, &root);
        if (reading.code == 0) {
            check_whole(&fresh, &root);
        }
        fresh.json = root.json;
    }
    if (reading.code != 0) {
        pipeline_fini(&fresh);
        (void)error_wrap(reterr, "pipeline.json");
        return reading.code;
    }
    *pipeline = fresh;
    return 0;
}

/* ---- What its users ask ---------------------------------------------------------------------- */

/* A point is inside if a line from it to the right crosses the border an odd number of times. */
static bool region_has(const struct pipeline_region *region, struct pipeline_point at)
{
    bool is_inside = false;

    for (size_t i = 0; i < region->point_count; i++) {
        const struct pipeline_point *a = &region->points[i];
        const struct pipeline_point *b = &region->points[(i + 1) % region->point_count];

        if ((a->y > at.y) != (b->y > at.y) &&
            at.x < a->x + (b->x - a->x) * (at.y - a->y) / (b->y - a->y)) {
            is_inside = !is_inside;
        }
    }
    return is_inside;
}

static bool has_class(const struct pipeline_stage *stage, size_t class_index)
{
    return stage->classes == NULL ||
           (class_index < stage->class_count && stage->classes[class_index]);
}

bool stage_wants(const struct pipeline_stage *stage, size_t class_index, int width, int height,
                 struct pipeline_point middle)
{
    if (width < stage->min_width || height < stage->min_height || !has_class(stage, class_index)) {
        return false;
    }
    for (size_t i = 0; i < stage->region_count; i++) {
        if (region_has(&stage->regions[i], middle)) {
            return true;
        }
    }
    return stage->region_count == 0;
}

const char *field_mapped(const struct pipeline_field *field, const char *text)
{
    return field->map != NULL ? json_string_value(json_object_get(field->map, text)) : text;
}
