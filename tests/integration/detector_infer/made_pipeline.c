#include "integration/detector_infer/made_pipeline.h"

#include "cmocka_all.h"

#include "integration/detector_infer/stand.h"

#include <stdio.h>
#include <string.h>

struct pipeline made_pipeline(const char *file)
{
    static const char format[] =
        "{\"version\": 1, \"models\": {\"rectangles\": {"
        " \"file\": \"%s\", \"decoder\": \"yolov8\", \"confidence\": 0.5, \"nms\": 0.4,"
        " \"input\": {\"width\": %d, \"height\": %d, \"fit\": \"stretch\"},"
        " \"classes\": [\"red\", \"green\", \"blue\"]}},"
        " \"stages\": [{\"name\": \"objects\", \"model\": \"rectangles\","
        "  \"fields\": {\"colour\": \"class\"}}],"
        " \"tracker\": {}}";
    struct baton_error error = {0};
    struct pipeline pipeline;
    char text[sizeof(format) + 128];

    (void)snprintf(text, sizeof(text), format, file, RECTANGLES_WIDTH, RECTANGLES_HEIGHT);
    if (pipeline_parse(&pipeline, text, strlen(text), &error) != 0) {
        fail_msg("%s", error.message);
    }
    return pipeline;
}
