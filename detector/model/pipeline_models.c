/* "models": {"vehicles": {"file": …, "input": …, "decoder": …, …}} */
#include "detector/model/pipeline_int.h"

static const char *const layouts[] = {[LAYOUT_NCHW] = "nchw", [LAYOUT_NHWC] = "nhwc"};
static const char *const colors[] = {[COLOR_RGB] = "rgb", [COLOR_BGR] = "bgr"};
#define NAME(symbol, name) #name,
const char *const decoder_names[] = {PIPELINE_DECODERS(NAME)};
static const char *const fits[] = {"stretch", "letterbox"};

static const char *const model_keys[] = {"file",  "input",      "decoder", "classes",
                                         "blank", "confidence", "nms",     NULL};
static const char *const input_keys[] = {"width", "height", "layout", "color", "fit",
                                         "scale", "mean",   "std",    NULL};

static void read_input(struct pipeline_input *input, const struct node *parent, bool has_boxes)
{
    enum { MIN = PIPELINE_SIDE_MIN, MAX = PIPELINE_SIDE_MAX };
    struct node node;

    node_init(&node, parent, "input", json_object_get(parent->json, "input"), input_keys);
    input->width = node_int(&node, "width", MIN, MAX, NODE_REQUIRED);
    input->height = node_int(&node, "height", MIN, MAX, NODE_REQUIRED);
    input->layout =
        (enum pipeline_layout)node_word(&node, "layout", layouts, LAYOUT_COUNT, LAYOUT_NCHW);
    input->color = (enum pipeline_color)node_word(&node, "color", colors, COLOR_COUNT, COLOR_RGB);
    input->is_letterboxed = node_word(&node, "fit", fits, 2, has_boxes) == 1;
    input->scale = node_float(&node, "scale", 1e-6, 1e6, 1.0 / 255);
    input->std[0] = input->std[1] = input->std[2] = 1;
    node_three(&node, "mean", -1e6, 1e6, input->mean);
    node_three(&node, "std", 1e-6, 1e6, input->std);
}

static void read_classes(struct pipeline_model *model, const struct node *node)
{
    struct node list;
    const char *key;
    json_t *value;

    node_list(&list, node, "classes", 1, PIPELINE_CLASSES_MAX);
    if (list.json == NULL && model->decoder != DECODER_TENSOR) {
        node_fail(node,
                  "classes is missing: a %s model needs the names of its classes, in the order of "
                  "its output",
                  decoder_names[model->decoder]);
    }
    if (list.json != NULL) {
        model->classes = node_new(node, json_object_size(list.json), sizeof(*model->classes));
    }
    json_object_foreach(list.json, key, value)
    {
        if (node_is_right(node)) {
            model->classes[model->class_count++] = node_text(&list, key, true, PIPELINE_TEXT_MAX);
        }
    }
}

static void refuse_for_decoder(const struct pipeline_model *model, const struct node *node,
                               const char *key, const char *of)
{
    if (json_object_get(node->json, key) != NULL) {
        node_fail(node, "%s is for %s; decoder is %s: remove it", key, of,
                  decoder_names[model->decoder]);
    }
}

static void read_limits(struct pipeline_model *model, const struct node *node)
{
    bool has_boxes = decoder_finds_boxes(model->decoder);
    bool has_overlaps = has_boxes && model->decoder != DECODER_YOLOV10; /* it has removed them */

    model->confidence = node_float(node, "confidence", 0, 1, has_boxes ? 0.25 : 0);
    model->nms = 1;
    model->blank = -1;
    if (has_overlaps) {
        model->nms = node_float(node, "nms", 0, 1, 0.45);
    } else {
        refuse_for_decoder(model, node, "nms", "decoders of boxes");
    }
    if (model->decoder == DECODER_TENSOR && model->class_count > 0) {
        model->blank = node_int(node, "blank", 0, (int)model->class_count - 1, -1);
    } else {
        refuse_for_decoder(model, node, "blank", "a tensor with classes");
    }
}

static void read_model(struct pipeline_model *model, const struct node *node)
{
    model->file = node_text(node, "file", true, PIPELINE_FILE_MAX);
    model->decoder = (enum pipeline_decoder)node_word(node, "decoder", decoder_names, DECODER_COUNT,
                                                      NODE_REQUIRED);
    read_input(&model->input, node, decoder_finds_boxes(model->decoder));
    read_classes(model, node);
    read_limits(model, node);
}

void models_read(struct pipeline *pipeline, const struct node *root)
{
    struct node models;
    const char *name;
    json_t *json;
    size_t count;

    node_init(&models, root, "models", json_object_get(root->json, "models"), NULL);
    count = node_count(root, "models", models.json, PIPELINE_MODELS_MAX);
    pipeline->models = node_new(root, count, sizeof(*pipeline->models));
    json_object_foreach(models.json, name, json)
    {
        struct pipeline_model *model;
        struct node node;

        if (!node_is_right(root)) {
            return;
        }
        model = &pipeline->models[pipeline->model_count++];
        model->name = node_name(root, "models", name);
        node_init(&node, &models, name, json, model_keys);
        read_model(model, &node);
    }
}
