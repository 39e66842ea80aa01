/* pipeline.json: the documented example is read as it says, and each slip is named with its path.
 * A row changes one thing in a good file. */
#include "cmocka_all.h"

#include "detector/model/pipeline.h"
#include "lib/assert_ok.h"
#include "lib/process.h"
#include "protocol/protocol.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES_MAX = 64 << 10, PATH_BYTES_MAX = 128 };

static const char base_text[] =
    "{\"version\": 1,"
    " \"models\": {"
    "  \"cars\": {\"file\": \"cars.onnx\", \"decoder\": \"yolov8\","
    "   \"input\": {\"width\": 640, \"height\": 384}, \"classes\": [\"car\", \"truck\", \"car\"]},"
    "  \"year\": {\"file\": \"m/year.onnx\", \"decoder\": \"classify\","
    "   \"input\": {\"width\": 224, \"height\": 224}, \"classes\": [\"2019\", \"2023\"]},"
    "  \"ocr\": {\"file\": \"m/ocr.onnx\", \"decoder\": \"tensor\","
    "   \"input\": {\"width\": 128, \"height\": 32}, \"classes\": [\"-\", \"A\"]}},"
    " \"stages\": ["
    "  {\"name\": \"cars\", \"model\": \"cars\"},"
    "  {\"name\": \"year\", \"model\": \"year\", \"from\": \"cars\","
    "   \"fields\": {\"carYear\": {\"value\": \"class\"}}},"
    "  {\"name\": \"ocr\", \"model\": \"ocr\", \"from\": \"cars\","
    "   \"fields\": {\"plate\": \"text\"}}]}";

static json_t *json_of(const char *text)
{
    json_error_t why;
    json_t *json = json_loads(text, JSON_DECODE_ANY, &why);

    if (json == NULL) {
        fail_msg("%s: %s", text, why.text);
    }
    return json;
}

/* "stages/1/from": the last part is set to the text's value, or taken away if it is NULL. */
static void change(json_t *root, const char *path, const char *text)
{
    char parts[PATH_BYTES_MAX], *rest, *part, *next;
    json_t *at = root;

    (void)snprintf(parts, sizeof(parts), "%s", path);
    part = strtok_r(parts, "/", &rest);
    while ((next = strtok_r(NULL, "/", &rest)) != NULL) {
        at = json_is_array(at) ? json_array_get(at, (size_t)strtol(part, NULL, 10))
                               : json_object_get(at, part);
        assert_non_null(at);
        part = next;
    }
    if (json_is_array(at)) {
        size_t index = (size_t)strtol(part, NULL, 10);
        assert_int_equal(json_array_set_new(at, index, json_of(text)), 0);
    } else if (text == NULL) {
        assert_int_equal(json_object_del(at, part), 0);
    } else {
        assert_int_equal(json_object_set_new(at, part, json_of(text)), 0);
    }
}

static int parse_json(struct pipeline *pipeline, const json_t *root, struct baton_error *error)
{
    char *text = json_dumps(root, 0);
    int rc;

    assert_non_null(text);
    rc = pipeline_parse(pipeline, text, strlen(text), error);
    free(text);
    return rc;
}

static int parse_changed(struct pipeline *pipeline, const char *path, const char *text,
                         struct baton_error *error)
{
    json_t *root = json_of(base_text);
    int rc;

    if (path != NULL) {
        change(root, path, text);
    }
    rc = parse_json(pipeline, root, error);
    json_decref(root);
    return rc;
}

static void parse_good(struct pipeline *pipeline, const char *path, const char *text)
{
    struct baton_error error = {0};

    if (parse_changed(pipeline, path, text, &error) != 0) {
        fail_msg("%s = %s: %s", path, text, error.message);
    }
}

static void what_is_left_out_has_its_default(void **state)
{
    struct pipeline pipeline;

    parse_good(&pipeline, NULL, NULL);
    assert_int_equal(pipeline.model_count, 3);
    assert_int_equal(pipeline.stage_count, 3);

    const struct pipeline_model *cars = &pipeline.models[0], *year = &pipeline.models[1];
    assert_string_equal(cars->name, "cars");
    assert_string_equal(cars->file, "cars.onnx");
    assert_int_equal(cars->input.width, 640);
    assert_int_equal(cars->input.height, 384);
    assert_int_equal(cars->input.layout, LAYOUT_NCHW);
    assert_int_equal(cars->input.color, COLOR_RGB);
    assert_true(cars->input.is_letterboxed);
    assert_float_equal(cars->input.scale, 1.0 / 255, 1e-9);
    assert_float_equal(cars->input.mean[2], 0, 0);
    assert_float_equal(cars->input.std[2], 1, 0);
    assert_float_equal(cars->confidence, 0.25, 1e-6);
    assert_float_equal(cars->nms, 0.45, 1e-6);
    assert_int_equal(cars->class_count, 3);
    assert_int_equal(cars->blank, -1);
    assert_false(year->input.is_letterboxed);
    assert_float_equal(year->confidence, 0, 0);

    const struct pipeline_stage *stage = &pipeline.stages[0];
    assert_int_equal(stage->from, PIPELINE_FROM_FRAME);
    assert_null(stage->classes);
    assert_int_equal(stage->min_width, 0);
    assert_int_equal(stage->region_count, 0);
    for (unsigned i = STAGE_NONE; i < STAGE_COUNT; i++) {
        assert_true(stage_is_on(stage, i));
    }
    assert_int_equal(pipeline.stages[2].from, 0);
    assert_int_equal(pipeline.stages[2].model, 2);
    assert_int_equal(pipeline.stages[2].fields[0].value, VALUE_TEXT);
    assert_false(pipeline.track.is_on);
    pipeline_fini(&pipeline);
    pipeline_fini(&pipeline);
    pipeline_fini(NULL);
}

/* The first fenced JSON of docs/pipeline.md, which must stay true. */
static void the_documented_example_is_read_as_it_says(void **state)
{
    static char page[PAGE_BYTES_MAX];
    struct pipeline pipeline;
    const char *text;

    (void)process_read_file(PIPELINE_PAGE, page, sizeof(page));
    text = strstr(page, "```json\n");
    assert_non_null(text);
    text += strlen("```json\n");
    ASSERT_OK(pipeline_parse(&pipeline, text, (size_t)(strstr(text, "```") - text), failure));
    assert_int_equal(pipeline.model_count, 4);
    assert_int_equal(pipeline.stage_count, 4);
    assert_float_equal(pipeline.models[1].input.mean[1], 0.456, 1e-6);
    assert_int_equal(pipeline.models[3].blank, 0);
    assert_int_equal(pipeline.models[3].input.color, COLOR_BGR);

    const struct pipeline_stage *vehicles = &pipeline.stages[0], *brand = &pipeline.stages[1];
    assert_true(stage_wants(vehicles, 0, 40, 1, (struct pipeline_point){0.5F, 0.5F}));
    assert_true(stage_wants(vehicles, 1, 40, 1, (struct pipeline_point){0.5F, 0.5F}));
    assert_false(stage_wants(vehicles, 2, 40, 1, (struct pipeline_point){0.5F, 0.5F}));
    assert_false(stage_wants(vehicles, 1, 40, 1, (struct pipeline_point){0.5F, 0.1F}));
    assert_true(stage_is_on(brand, STAGE_WELCOME));
    assert_false(stage_is_on(brand, STAGE_NONE));
    assert_int_equal(brand->field_count, 2);
    assert_string_equal(brand->fields[1].name, "carYear");
    assert_int_equal(brand->fields[1].type, TYPE_INTEGER);
    assert_string_equal(field_mapped(&brand->fields[1], "golf-2019"), "2019");
    assert_null(field_mapped(&brand->fields[1], "golf"));
    assert_int_equal(pipeline.stages[3].from, 2);
    assert_true(pipeline.track.is_on);
    assert_int_equal(pipeline.track.report, REPORT_ONCE);
    pipeline_fini(&pipeline);
}

static void a_class_name_means_all_that_bear_it(void **state)
{
    struct pipeline pipeline;

    parse_good(&pipeline, "stages/1/classes", "[\"car\"]");
    assert_int_equal(pipeline.stages[1].class_count, 3);
    assert_memory_equal(pipeline.stages[1].classes, ((bool[]){true, false, true}), 3);
    pipeline_fini(&pipeline);
}

static void the_tracker_is_on_where_it_is_named(void **state)
{
    struct pipeline pipeline;

    parse_good(&pipeline, "tracker", "{}");
    assert_true(pipeline.track.is_on);
    assert_int_equal(pipeline.track.report, REPORT_ONCE);
    assert_int_equal(pipeline.track.max_age_ms, PIPELINE_AGE_MS);
    pipeline_fini(&pipeline);
    parse_good(&pipeline, "tracker",
               "{\"report\": \"every\", \"everyMs\": 5000, \"iou\": 0.5, \"maxAgeMs\": 1}");
    assert_int_equal(pipeline.track.report, REPORT_EVERY);
    assert_int_equal(pipeline.track.every_ms, 5000);
    assert_float_equal(pipeline.track.iou, 0.5, 1e-6);
    assert_int_equal(pipeline.track.max_age_ms, 1);
    pipeline_fini(&pipeline);
}

static void what_is_right_is_taken(void **state)
{
    static const struct {
        const char *path, *value;
    } rows[] = {
        {"tracker", "null"},
        {"models/cars/nms", "null"},
        {"models/cars/confidence", "1"},
        {"models/cars/input/width", "8"},
        {"models/cars/input/height", "4096"},
        {"models/cars/input/fit", "\"stretch\""},
        {"models/cars/input/layout", "\"nhwc\""},
        {"models/cars/input/mean", "[-1, 0.5, 127]"},
        {"models/cars/decoder", "\"yolov5\""},
        {"models/ocr/blank", "1"},
        {"stages/0/regions", "[[0, 0, 1, 1], [[0, 0], [1, 0], [0, 1]]]"},
        {"stages/0/when", "[\"none\", \"car_postpayment\"]"},
        {"stages/0/minHeight", "65535"},
        {"stages/0/fields", "{\"x\": \"x\", \"kind\": \"class\", \"sure\": \"confidence\"}"},
        {"stages/1/fields/carYear", "{\"value\": \"class\", \"type\": \"integer\"}"},
        {"stages/1/fields/carYear/map", "{\"2019\": \"old\"}"},
        {"stages/2/fields/carYear", "\"text\""}, /* filled by two stages */
        {"stages/2/fields/n", "{\"value\": \"number\", \"index\": 65535, \"type\": \"integer\"}"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pipeline pipeline;
        parse_good(&pipeline, rows[i].path, rows[i].value);
        pipeline_fini(&pipeline);
    }
}

static const struct slip {
    const char *path, *value, *says;
} slips[] = {
    {"version", NULL, "pipeline.json: version is missing"},
    {"version", "2", "version is 2: must be 1"},
    {"verison", "1", "verison is no field here; did you mean \"version\"?"},
    {"models", NULL, "models is missing: must be an object"},
    {"models", "[]", "models is an array: must be an object"},
    {"models", "{}", "models has 0 entries: must have 1 to 16"},
    {"models/a b", "{}", "models: \"a b\" must be 1 to 63 letters"},
    {"models/cars", "1", "models.cars is an integer: must be an object"},
    {"models/cars/file", NULL, "models.cars.file is missing"},
    {"models/cars/file", "\"\"", "models.cars.file is 0 bytes long: must be 1 to 255"},
    {"models/cars/decoder", NULL, "models.cars.decoder is missing: must be yolov5"},
    {"models/cars/decoder", "\"yolo8\"",
     "models.cars.decoder is \"yolo8\": must be yolov5, yolov8, yolov10, ssd, retinaface, classify "
     "or tensor; did you mean \"yolov8\"?"},
    {"models/cars/input", NULL, "models.cars.input is missing: must be an object"},
    {"models/cars/input/width", NULL, "models.cars.input.width is missing"},
    {"models/cars/input/width", "7", "models.cars.input.width is 7: must be 8 to 4096"},
    {"models/cars/input/height", "640.5", "models.cars.input.height is a fraction"},
    {"models/cars/input/colour", "\"rgb\"",
     "input.colour is no field here; did you mean \"color\""},
    {"models/cars/input/layout", "\"NCHW\"", "is \"NCHW\": must be nchw or nhwc"},
    {"models/cars/input/scale", "0", "models.cars.input.scale is 0: must be 1e-06"},
    {"models/cars/input/mean", "[0, 0]", "models.cars.input.mean has 2 elements: must have 3"},
    {"models/cars/input/mean", "[0, 0, \"0\"]", "models.cars.input.mean[2] is a string"},
    {"models/cars/input/std", "[1, 0, 1]", "models.cars.input.std[1] is 0: must be"},
    {"models/cars/classes", NULL, "models.cars.classes is missing: a yolov8 model needs"},
    {"models/cars/classes", "[]", "models.cars.classes has 0 elements: must have 1 to 4096"},
    {"models/cars/classes/1", "5", "models.cars.classes[1] is an integer: must be a string"},
    {"models/cars/classes/1", "\"\"", "models.cars.classes[1] is 0 bytes long"},
    {"models/cars/classes/1", "\"a\\n\"", "models.cars.classes[1] holds control characters"},
    {"models/cars/confidence", "1.5", "models.cars.confidence is 1.5: must be 0 to 1"},
    {"models/year/nms", "0.5", "models.year.nms is for decoders of boxes; decoder is classify"},
    {"models/cars/blank", "0", "models.cars.blank is for a tensor with classes"},
    {"models/ocr/blank", "2", "models.ocr.blank is 2: must be 0 to 1"},
    {"models/spare",
     "{\"file\": \"a\", \"decoder\": \"tensor\", \"input\": {\"width\": 9, \"height\": 9}}",
     "models.spare is used by no stage"},
    {"stages", NULL, "stages is missing"},
    {"stages", "[]", "stages has 0 elements: must have 1 to 32"},
    {"stages/0", "null", "stages[0] is null: must be an object"},
    {"stages/0/name", NULL, "stages[0].name is missing"},
    {"stages/0/name", "\"a.b\"", "stages[0].name: \"a.b\" must be 1 to 63 letters"},
    {"stages/1/name", "\"cars\"", "stages[1].name is \"cars\", as stages[0] is called"},
    {"stages/0/model", "\"card\"",
     "stages[0].model is \"card\": must be the name of one of \"models\"; did you mean \"cars\"?"},
    {"stages/1/from", "\"car\"",
     "stages[1].from is \"car\": must be the name of a stage before this one; did you mean"},
    {"stages/1/from", "\"ocr\"", "stages[1].from is \"ocr\": must be the name of a stage before"},
    {"stages/1/from", "\"year\"", "stages[1].from is \"year\": must be the name of a stage before"},
    {"stages/2/from", "\"year\"", "stages[2].from is \"year\", which finds no objects to look at"},
    {"stages/0/classes", "[\"bus\"]", "stages[0].classes[0] is \"bus\": must be a class"},
    {"stages/0/classes", "[\"car\", \"trukc\"]",
     "classes[1] is \"trukc\": must be a class of the objects' model; did you mean \"truck\"?"},
    {"stages/0/classes", "[]", "stages[0].classes has 0 elements"},
    {"stages/0/minWidth", "-1", "stages[0].minWidth is -1: must be 0 to 65535"},
    {"stages/0/minwidth", "1", "stages[0].minwidth is no field here; did you mean \"minWidth\"?"},
    {"stages/0/regions", "[[0, 0, 1]]", "stages[0].regions[0]: must be [left, top, right, bottom]"},
    {"stages/0/regions", "[[0, 0, 1, 1], 7]", "stages[0].regions[1]: must be"},
    {"stages/0/regions", "[[1, 0, 0, 1]]", "stages[0].regions[0]: must be"},
    {"stages/0/regions", "[[0, 0, 1, 1.1]]", "stages[0].regions[0]: must be"},
    {"stages/0/regions", "[[[0, 0], [1, 1]]]", "stages[0].regions[0]: must be"},
    {"stages/0/regions", "[[[0, 0], [0.5, 0.5], [1, 1]]]", "stages[0].regions[0] has no area"},
    {"stages/0/when", "[]", "stages[0].when has 0 elements"},
    {"stages/0/when", "[\"car_fuelling\"]",
     "stages[0].when[0] is \"car_fuelling\": must be a progression stage, or none; did you mean "
     "\"car_fueling\"?"},
    {"stages/0/when", "[7]", "stages[0].when[0] is an integer"},
    {"stages/1/fields", NULL, "stages[1] (\"year\") fills no field and no stage is from it"},
    {"stages/1/fields", "{}", "stages[1].fields has 0 entries"},
    {"stages/1/fields", "[]", "stages[1].fields is an array: must be an object"},
    {"stages/1/fields/a.b", "\"class\"", "stages[1].fields: \"a.b\" must be 1 to 63 letters"},
    {"stages/1/fields/carYear", "1", "stages[1].fields.carYear is an integer: must be an object"},
    {"stages/1/fields/carYear", "\"klass\"",
     "stages[1].fields.carYear.value is \"klass\": must be class, confidence"},
    {"stages/1/fields/carYear", "{}", "stages[1].fields.carYear.value is missing"},
    {"stages/1/fields/carYear", "\"width\"",
     "stages[1].fields.carYear.value is width, which model \"year\" with decoder classify does not "
     "give"},
    {"stages/1/fields/carYear/type", "\"int\"", "fields.carYear.type is \"int\": must be asItIs"},
    {"stages/1/fields/carYear/index", "0", "carYear.index is for the value number; value is class"},
    {"stages/1/fields/carYear/map", "{\"2018\": \"x\"}",
     "stages[1].fields.carYear.map's key is \"2018\": must be a class of the stage's model; did "
     "you mean \"2019\"?"},
    {"stages/1/fields/carYear/map", "{\"2019\": 2019}", "carYear.map.2019 is an integer: must be"},
    {"stages/1/fields/carYear/map", "{}", "carYear.map has 0 entries: must have 1 to 4096"},
    {"stages/1/fields/carYear",
     "{\"value\": \"class\", \"type\": \"integer\", \"map\": {\"2019\": \"1e3\"}}",
     "stages[1].fields.carYear.map: \"2019\" becomes \"1e3\": must be a whole number"},
    {"stages/0/fields", "{\"k\": {\"value\": \"class\", \"type\": \"integer\"}}",
     "stages[0].fields.k.type is integer and class 0 is \"car\": must be a whole number"},
    {"stages/0/fields", "{\"k\": {\"value\": \"confidence\", \"type\": \"integer\"}}",
     "stages[0].fields.k.type is integer: a confidence is 0 to 1"},
    {"stages/0/fields", "{\"k\": {\"value\": \"x\", \"map\": {\"1\": \"2\"}}}",
     "stages[0].fields.k.map is for the values class and text"},
    {"stages/0/fields", "{\"k\": \"track\"}", "stages[0].fields.k is track: add \"tracker\": {}"},
    {"stages/2/fields", "{\"n\": {\"value\": \"number\", \"index\": 65536}}",
     "stages[2].fields.n.index is 65536: must be 0 to 65535"},
    {"models/ocr/classes", NULL, "stages[2].fields.plate.value is text: model \"ocr\" needs"},
    {"tracker", "true", "tracker is a boolean: must be an object"},
    {"tracker", "{\"iou\": 0}", "tracker.iou is 0: must be 0.01 to 1"},
    {"tracker", "{\"maxAgeMs\": 600001}", "tracker.maxAgeMs is 600001: must be 1 to 600000"},
    {"tracker", "{\"report\": \"often\"}", "tracker.report is \"often\": must be once, every or"},
    {"tracker", "{\"report\": \"every\"}", "tracker.everyMs is missing"},
    {"tracker", "{\"everyMs\": 5}", "tracker.everyMs is for report every; report is once"},
};

static void each_slip_is_named_with_its_path(void **state)
{
    for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
        struct pipeline pipeline;

        ASSERT_FAILS(parse_changed(&pipeline, slips[i].path, slips[i].value, failure), BATON_EPROTO,
                     slips[i].says);
    }
}

static void more_fields_than_are_reported_are_refused(void **state)
{
    json_t *root = json_of(base_text);
    char path[PATH_BYTES_MAX];
    struct pipeline pipeline;

    change(root, "stages/0/fields", "{}");
    for (int i = 0; i < 63; i++) { /* beside the two that are there */
        (void)snprintf(path, sizeof(path), "stages/%d/fields/f-%d", i / PIPELINE_FIELDS_MAX, i);
        change(root, path, "\"class\"");
    }
    ASSERT_FAILS(parse_json(&pipeline, root, failure), BATON_EPROTO,
                 "stages fill 65 fields: at most 64 are reported");
    json_decref(root);
}

static void what_is_no_json_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "pipeline.json: not valid JSON at line 1, column 0: it is empty"},
        {"{", "pipeline.json: not valid JSON at line 1, column 1"},
        {"[]", "pipeline.json: it is an array: must be an object"},
        {"1", "pipeline.json: not valid JSON at line 1, column 1"},
        {"{\"version\": 1, \"version\": 1}", "at line 1, column 24: a key is there twice"},
        {"{} {}", "something follows its end"},
        {"[[[[[[[[[[", "pipeline.json: nested more than 8 levels deep"},
        {"{\"a\": \"\\u0000\"}", "not valid JSON"},
        {"{\"a\": \"\xff\"}", "it is not UTF-8"},
    };
    struct pipeline pipeline = {.model_count = 7};
    char *large = calloc(1, PIPELINE_BYTES_MAX + 1);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *text = rows[i].text[0] != '\0' ? rows[i].text : NULL;
        ASSERT_FAILS(pipeline_parse(&pipeline, text, strlen(rows[i].text), failure), BATON_EPROTO,
                     rows[i].says);
    }
    assert_non_null(large);
    assert_int_equal(pipeline_parse(&pipeline, large, PIPELINE_BYTES_MAX + 1, NULL), BATON_ETOOBIG);
    free(large);
    assert_int_equal(pipeline.model_count, 7); /* untouched */
}

static void one_region_with_the_middle_is_enough(void **state)
{
    /* A rectangle on the left and an L on the right. */
    struct pipeline_region regions[] = {
        {.points = {{0, 0}, {0.25F, 0}, {0.25F, 1}, {0, 1}}, .point_count = 4},
        {.points = {{0.5F, 0}, {0.75F, 0}, {0.75F, 0.5F}, {1, 0.5F}, {1, 1}, {0.5F, 1}},
         .point_count = 6},
    };
    static const struct {
        struct pipeline_point at;
        bool is_wanted;
    } rows[] = {
        {{0.1F, 0.1F}, true},   {{0.1F, 0.9F}, true},  {{0.3F, 0.5F}, false}, {{0.6F, 0.25F}, true},
        {{0.9F, 0.25F}, false}, {{0.9F, 0.75F}, true}, {{0.6F, 0.75F}, true},
    };
    struct pipeline_stage stage = {.regions = regions, .region_count = 2};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(stage_wants(&stage, 0, 1, 1, rows[i].at), rows[i].is_wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_has_its_default),
        cmocka_unit_test(the_documented_example_is_read_as_it_says),
        cmocka_unit_test(a_class_name_means_all_that_bear_it),
        cmocka_unit_test(the_tracker_is_on_where_it_is_named),
        cmocka_unit_test(what_is_right_is_taken),
        cmocka_unit_test(each_slip_is_named_with_its_path),
        cmocka_unit_test(more_fields_than_are_reported_are_refused),
        cmocka_unit_test(what_is_no_json_is_refused_with_the_reason),
        cmocka_unit_test(one_region_with_the_middle_is_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
