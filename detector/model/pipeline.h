/* pipeline.json of a model archive: which models see what, and what of it is reported.
 *
 *   frame ─▶ stage "vehicles" (detector) ─▶ objects ─▶ tracker ─▶ one flat `detection` each
 *                                              │ crop
 *                                              ├─▶ stage "brand" (classifier) ─▶ carBrand
 *                                              └─▶ stage "plate" (detector) ─▶ crop
 *                                                     └─▶ stage "text" ─▶ licensePlateText
 *
 * Reading is strict: an unknown field, a wrong type, a number out of range, a name that nothing
 * bears are errors that name the path of the field and the way out. What is read is resolved
 * (names of models, stages and classes are indexes) and bounded by the limits below, so that who
 * runs it checks nothing again. docs/pipeline.md is the schema for people. Pure: no I/O here.
 */
#ifndef DETECTOR_MODEL_PIPELINE_H
#define DETECTOR_MODEL_PIPELINE_H

#include <baton/error.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its name in an archive. */
#define PIPELINE_FILE "pipeline.json"

enum {
    PIPELINE_VERSION = 1,
    PIPELINE_BYTES_MAX = 1 << 20,
    PIPELINE_DEPTH_MAX = 8,
    PIPELINE_MODELS_MAX = 16,
    PIPELINE_STAGES_MAX = 32,
    PIPELINE_CLASSES_MAX = 4096, /* of one model */
    PIPELINE_REGIONS_MAX = 16,   /* of one stage */
    PIPELINE_POINTS_MAX = 32,    /* of one region */
    PIPELINE_FIELDS_MAX = 32,    /* of one stage */
    PIPELINE_MAP_MAX = 4096,     /* entries of one field's map */
    PIPELINE_NAME_MAX = 63,      /* bytes of the name of a model, a stage, a field */
    PIPELINE_FILE_MAX = 255,     /* bytes of a file's name in the archive */
    PIPELINE_TEXT_MAX = 127,     /* bytes of a class name, a mapped value */
    PIPELINE_SIDE_MIN = 8,       /* pixels of a model's input */
    PIPELINE_SIDE_MAX = 4096,
    PIPELINE_SIZE_MAX = 65535, /* pixels of a frame */
    PIPELINE_AGE_MAX_MS = 600000,
    PIPELINE_EVERY_MAX_MS = 24 * 60 * 60 * 1000,
    PIPELINE_INDEX_MAX = 65535, /* element of a plain tensor */
    PIPELINE_AGE_MS = 2000,
};

enum { PIPELINE_FROM_FRAME = -1 };

/* X(symbol, name in the file). The name is a word of C, too: see detector/infer/decoder.h. */
#define PIPELINE_BOX_DECODERS(X)                                                                   \
    X(DECODER_YOLOV5, yolov5)                                                                      \
    X(DECODER_YOLOV8, yolov8)   /* also YOLOv11: the same shape */                                 \
    X(DECODER_YOLOV10, yolov10) /* and exports that end with the choice of boxes */                \
    X(DECODER_SSD, ssd)                                                                            \
    X(DECODER_RETINAFACE, retinaface)
#define PIPELINE_DECODERS(X)                                                                       \
    PIPELINE_BOX_DECODERS(X)                                                                       \
    X(DECODER_CLASSIFY, classify)                                                                  \
    X(DECODER_TENSOR, tensor)

/* The results that a field can have, and their decoders (bits 1 << DECODER_…). */
#define PIPELINE_VALUES(X)                                                                         \
    X(VALUE_CLASS, "class", PIPELINE_BOXES | 1U << DECODER_CLASSIFY)                               \
    X(VALUE_CONFIDENCE, "confidence", PIPELINE_ALL)                                                \
    X(VALUE_TEXT, "text", PIPELINE_BOXES | 1U << DECODER_TENSOR)                                   \
    X(VALUE_NUMBER, "number", 1U << DECODER_TENSOR)                                                \
    X(VALUE_TRACK, "track", PIPELINE_BOXES)                                                        \
    X(VALUE_X, "x", PIPELINE_BOXES)                                                                \
    X(VALUE_Y, "y", PIPELINE_BOXES)                                                                \
    X(VALUE_WIDTH, "width", PIPELINE_BOXES)                                                        \
    X(VALUE_HEIGHT, "height", PIPELINE_BOXES)
#define PIPELINE_ENUM(symbol, ...) symbol,
enum pipeline_layout { LAYOUT_NCHW, LAYOUT_NHWC, LAYOUT_COUNT };
enum pipeline_color { COLOR_RGB, COLOR_BGR, COLOR_COUNT };
enum pipeline_decoder { PIPELINE_DECODERS(PIPELINE_ENUM) DECODER_COUNT };
enum pipeline_report { REPORT_ONCE, REPORT_EVERY, REPORT_CHANGE, REPORT_COUNT };
enum pipeline_value { PIPELINE_VALUES(PIPELINE_ENUM) VALUE_COUNT };
enum pipeline_type { TYPE_AS_IT_IS, TYPE_STRING, TYPE_INTEGER, TYPE_COUNT };
#undef PIPELINE_ENUM

extern const char *const decoder_names[DECODER_COUNT];

#define PIPELINE_BIT(symbol, name) | 1U << symbol
#define PIPELINE_BOXES             (0U PIPELINE_BOX_DECODERS(PIPELINE_BIT))
#define PIPELINE_ALL               ((1U << DECODER_COUNT) - 1)

struct pipeline_input {
    int width, height;
    enum pipeline_layout layout;
    enum pipeline_color color;
    bool is_letterboxed; /* proportions kept, grey beside it; else stretched */
    float scale;         /* the model's input is (pixel * scale - mean) / std */
    float mean[3], std[3];
};

struct pipeline_model {
    const char *name;
    const char *file; /* its name in the archive */
    struct pipeline_input input;
    enum pipeline_decoder decoder;
    const char **classes; /* none for some tensors; names may repeat */
    size_t class_count;
    int blank; /* tensor: the class that stands for no letter; -1: none */
    float confidence, nms;
};

struct pipeline_point {
    float x, y; /* 0 to 1 of the picture */
};

struct pipeline_region {
    struct pipeline_point points[PIPELINE_POINTS_MAX];
    size_t point_count; /* at least 3; a rectangle has 4 */
};

struct pipeline_field {
    const char *name; /* in the `detection` object: "carBrand" */
    enum pipeline_value value;
    enum pipeline_type type;
    int index;   /* VALUE_NUMBER: which element */
    json_t *map; /* texts by texts; for others the field is left out; NULL: no map */
};

/* `classes`, `min_*` and `regions` choose objects: those that a stage finds in the frame, or those
 * that a later stage is given. */
struct pipeline_stage {
    const char *name;
    size_t model;  /* index */
    int from;      /* index of an earlier stage; PIPELINE_FROM_FRAME */
    bool *classes; /* of the classes of the objects' model those that are chosen; NULL: all */
    size_t class_count;
    int min_width, min_height; /* pixels of the frame; 0: any */
    struct pipeline_region
        *regions; /* the middle of the object is in one of them; NULL: anywhere */
    size_t region_count;
    unsigned when; /* bits 1 << enum stage (protocol/protocol.h) */
    struct pipeline_field *fields;
    size_t field_count;
};

struct pipeline_track {
    bool is_on; /* false: every object of every frame is reported */
    float iou;
    int max_age_ms;
    enum pipeline_report report;
    int every_ms; /* REPORT_EVERY */
};

/* Owns everything it points to; all texts and maps are those of `json`. */
struct pipeline {
    json_t *json; /* the file */
    struct pipeline_model *models;
    size_t model_count;
    struct pipeline_stage *stages; /* each after the one it is `from` */
    size_t stage_count;
    struct pipeline_track track;
};

/* Returns BATON_EPROTO with the path of the wrong field, BATON_ETOOBIG or BATON_ENOMEM, and then
 * leaves `pipeline` as it was. After success the caller calls pipeline_fini(). */
int pipeline_parse(struct pipeline *pipeline, const char *bytes, size_t count,
                   struct baton_error *reterr);
void pipeline_fini(struct pipeline *pipeline); /* NULL and zeroes are allowed */

static inline bool decoder_finds_boxes(enum pipeline_decoder decoder)
{
    return (PIPELINE_BOXES >> decoder & 1U) != 0;
}

/* True if the stage runs in this progression stage. */
static inline bool stage_is_on(const struct pipeline_stage *stage, unsigned progression)
{
    return (stage->when >> progression & 1U) != 0;
}

/* True if the stage chooses objects of that class, size and middle (0 to 1). */
bool stage_wants(const struct pipeline_stage *stage, size_t class_index, int width, int height,
                 struct pipeline_point middle);

/* Returns the field's value for that class or text; NULL: the field is left out. */
const char *field_mapped(const struct pipeline_field *field, const char *text);

#endif
