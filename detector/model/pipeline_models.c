/* "models": {"vehicles": {"file": …, "input": …, "decoder": …, …}} */
#include "detector/model/pipeline_int.h"

#include "base/error.h"
#include "base/json_read.h"
#include "detector/model/name.h"

#include <stdio.h>
#include <string.h>

#define WORD(symbol, name) name,
static const char *const layouts[] = {PIPELINE_LAYOUTS(WORD)};
static const char *const colors[] = {PIPELINE_COLORS(WORD)};
static const char *const decoders[] = {PIPELINE_DECODERS(WORD)};
#undef WORD
static const char *const fits[] = {"stretch", "letterbox"};

static const char *const model_keys[] = {"file",  "input",      "decoder", "classes",
                                         "blank", "confidence", "nms",     NULL};
static const char *const input_keys[] = {"width", "height", "layout", "color", "fit",
                                         "scale", "mean",   "std",    NULL};

/* One number for each colour. */
static int read_three(float ret[3], const struct node *node, const char *key, double low,
                      struct baton_error *reterr)
{
    json_t *list;
    int rc = node_list(node, key, 3, 3, &list, reterr);

    for (size_t i = 0; rc == 0 && list != NULL && i < 3; i++) {
        const json_t *number = json_array_get(list, i);
        double value = json_number_value(number); /* 0 of what is no number */

        if (!json_is_number(number)) {
            rc = error_set(reterr, BATON_EPROTO, "%s%s[%zu] is %s: must be a number", node->path,
                           key, i, json_type_name(json_typeof(number)));
        } else if (!(value >= low && value <= 1e6)) {
            rc = error_set(reterr, BATON_EPROTO, "%s%s[%zu] is %g: must be %g to %g", node->path,
                           key, i, value, low, 1e6);
        } else {
            ret[i] = (float)value;
        }
    }
    return rc;
}

static int read_side(int *ret, const struct node *node, const char *key, struct baton_error *reterr)
{
    int64_t side;
    int rc = json_read_integer(node->json, node->path, key, PIPELINE_SIDE_MIN, PIPELINE_SIDE_MAX,
                               NULL, &side, reterr);

    if (rc == 0) {
        *ret = (int)side;
    }
    return rc;
}

static int read_input(struct pipeline_model *model, const struct node *parent,
                      struct baton_error *reterr)
{
    struct pipeline_input *input = &model->input;
    struct node node;
    int layout = LAYOUT_NCHW, color = COLOR_RGB, fit = decoder_finds_boxes(model->decoder);
    int rc = node_init(&node, parent, "input", json_object_get(parent->json, "input"), reterr);

    *input = (struct pipeline_input){.scale = 1.0F / 255, .std = {1, 1, 1}};
    rc = rc ? rc : node_check_keys(&node, input_keys, reterr);
    rc = rc ? rc : read_side(&input->width, &node, "width", reterr);
    rc = rc ? rc : read_side(&input->height, &node, "height", reterr);
    rc = rc ? rc : node_word(&node, "layout", layouts, LAYOUT_COUNT, &layout, reterr);
    rc = rc ? rc : node_word(&node, "color", colors, COLOR_COUNT, &color, reterr);
    rc = rc ? rc : node_word(&node, "fit", fits, 2, &fit, reterr);
    rc = rc ? rc : node_float(&node, "scale", 1e-6, 1e6, &input->scale, reterr);
    rc = rc ? rc : read_three(input->mean, &node, "mean", -1e6, reterr);
    rc = rc ? rc : read_three(input->std, &node, "std", 1e-6, reterr);
    input->layout = (enum pipeline_layout)layout;
    input->color = (enum pipeline_color)color;
    input->is_letterboxed = fit == 1;
    return rc;
}

static int read_classes(struct pipeline_model *model, const struct node *node,
                        struct baton_error *reterr)
{
    json_t *list;
    int rc = node_list(node, "classes", 1, PIPELINE_CLASSES_MAX, &list, reterr);

    if (rc != 0) {
        return rc;
    }
    if (list == NULL) {
        return model->decoder == DECODER_TENSOR
                   ? 0
                   : error_set(reterr, BATON_EPROTO,
                               "%sclasses is missing: a %s model needs the names of its classes, "
                               "in the order of its output",
                               node->path, decoders[model->decoder]);
    }
    model->classes = list_new(json_array_size(list), sizeof(*model->classes), reterr);
    rc = model->classes == NULL ? BATON_ENOMEM : 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        const json_t *name = json_array_get(list, i);
        char key[32];

        (void)snprintf(key, sizeof(key), "classes[%zu]", i);
        rc = text_check(name, node->path, key, PIPELINE_TEXT_MAX, reterr);
        rc = rc ? rc : text_copy(&model->classes[i], json_string_value(name), reterr);
        model->class_count += rc == 0;
    }
    return rc;
}

static int refuse_for_decoder(const struct pipeline_model *model, const struct node *node,
                              const char *key, const char *of, struct baton_error *reterr)
{
    if (json_object_get(node->json, key) == NULL) {
        return 0;
    }
    return error_set(reterr, BATON_EPROTO, "%s%s is for %s; decoder is %s: remove it", node->path,
                     key, of, decoders[model->decoder]);
}

static int read_limits(struct pipeline_model *model, const struct node *node,
                       struct baton_error *reterr)
{
    bool has_boxes = decoder_finds_boxes(model->decoder);
    bool has_overlaps = has_boxes && model->decoder != DECODER_YOLOV10; /* it has removed them */
    bool has_letters = model->decoder == DECODER_TENSOR && model->class_count > 0;
    int rc;

    model->blank = -1;
    model->confidence = has_boxes ? 0.25F : 0;
    model->nms = has_overlaps ? 0.45F : 1;
    rc = node_float(node, "confidence", 0, 1, &model->confidence, reterr);
    if (rc == 0) {
        rc = has_overlaps ? node_float(node, "nms", 0, 1, &model->nms, reterr)
                          : refuse_for_decoder(model, node, "nms", "decoders of boxes", reterr);
    }
    if (rc == 0) {
        rc = has_letters
                 ? node_int(node, "blank", 0, (int)model->class_count - 1, &model->blank, reterr)
                 : refuse_for_decoder(model, node, "blank", "a tensor with classes", reterr);
    }
    return rc;
}

static int read_file(struct pipeline_model *model, const struct node *node,
                     struct baton_error *reterr)
{
    const char *file;
    int rc = json_read_text(node->json, node->path, "file", true, NAME_BYTES_MAX, &file, reterr);

    if (rc == 0 && (rc = name_check(file, reterr)) != 0) {
        (void)error_wrap(reterr, "%sfile", node->path);
    }
    return rc ? rc : text_copy(&model->file, file, reterr);
}

static int read_model(struct pipeline_model *model, const struct node *node,
                      struct baton_error *reterr)
{
    int decoder = DECODER_COUNT;
    int rc = node_check_keys(node, model_keys, reterr);

    rc = rc ? rc : read_file(model, node, reterr);
    rc = rc ? rc : node_word(node, "decoder", decoders, DECODER_COUNT, &decoder, reterr);
    if (rc == 0 && decoder == DECODER_COUNT) {
        rc = error_set(reterr, BATON_EPROTO,
                       "%sdecoder is missing: must be yolov5, yolov8, yolov10, ssd, retinaface, "
                       "classify or tensor",
                       node->path);
    }
    if (rc != 0) {
        return rc;
    }
    model->decoder = (enum pipeline_decoder)decoder;
    rc = read_input(model, node, reterr);
    rc = rc ? rc : read_classes(model, node, reterr);
    return rc ? rc : read_limits(model, node, reterr);
}

int models_read(struct pipeline *pipeline, const struct node *root, struct baton_error *reterr)
{
    struct node models;
    int rc = node_init(&models, root, "models", json_object_get(root->json, "models"), reterr);
    size_t count;

    if (rc != 0) {
        return rc;
    }
    count = json_object_size(models.json);
    if (count < 1 || count > PIPELINE_MODELS_MAX) {
        return error_set(reterr, BATON_EPROTO, "models has %zu entries: must have 1 to %d", count,
                         PIPELINE_MODELS_MAX);
    }
    pipeline->models = list_new(count, sizeof(*pipeline->models), reterr);
    rc = pipeline->models == NULL ? BATON_ENOMEM : 0;
    for (void *at = json_object_iter(models.json); rc == 0 && at != NULL;
         at = json_object_iter_next(models.json, at)) {
        struct pipeline_model *model = &pipeline->models[pipeline->model_count++];
        const char *name = json_object_iter_key(at);
        struct node node;

        rc = name_of_part_check(name, "", "models", reterr);
        rc = rc ? rc : text_copy(&model->name, name, reterr);
        rc = rc ? rc : node_init(&node, &models, name, json_object_iter_value(at), reterr);
        rc = rc ? rc : read_model(model, &node, reterr);
    }
    return rc;
}
