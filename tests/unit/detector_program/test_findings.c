#include "cmocka_all.h"

#include "detector/program/findings.h"
#include "lib/assert_ok.h"
#include "lib/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 360, TEXT_MAX = 1 << 16 };

static uint8_t luma[WIDTH * HEIGHT];
static char folder[64];
static char text[TEXT_MAX];

static const char *content(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    (void)process_read_file(path, text, sizeof(text));
    return text;
}

/* A frame with one object that is reported, one that the model is not sure of, and one lost. */
static void show(struct findings *findings, uint64_t number)
{
    const struct box boxes[] = {
        {64, 90, 128, 100, 0.75F, 0}, {10, 2, 20, 10, 0.3F, 1}, {0, 0, 9, 9, 1, 0}};
    struct image_box drawn[IMAGE_BOXES_MAX];
    json_t *attributes = json_pack("{s:s}", "kind", "car");
    const struct sighting sightings[] = {
        {.box = boxes[0], .class_name = "<car>", .track = 7, .attributes = attributes},
        {.box = boxes[1], .class_name = "Ü", .track = 8, .is_unsure = true},
        {.box = boxes[2], .class_name = "gone", .track = 9, .is_lost = true}};
    const struct frame frame = {.width = WIDTH,
                                .height = HEIGHT,
                                .stride = {WIDTH, WIDTH / 2, WIDTH / 2},
                                .plane = {luma, luma, luma},
                                .number = number,
                                .pts_us = 1500000};
    const struct inference_result result = {&frame, sightings, 3, {0}};

    ASSERT_OK(findings_add(findings, &result, 0.5, failure));
    assert_int_equal(findings_boxes(drawn, &result), 2);
    assert_int_equal(drawn[1].x, 10);
    json_decref(attributes);
}

static void each_file_says_what_was_seen(void **state)
{
    struct findings findings;

    process_make_folder(folder, sizeof(folder));
    assert_int_equal(findings_open(&findings, folder, NULL), 0);
    show(&findings, 12);
    assert_int_equal(findings.counts.objects, 2);
    assert_int_equal(findings.counts.detections, 1);
    assert_int_equal(findings_close(&findings, NULL), 0);
    assert_string_equal(content("objects.jsonl"),
                        "{\"frame\":12,\"class\":\"<car>\",\"box\":[64.0,90.0,128.0,100.0],"
                        "\"score\":0.75,\"track\":7,\"detection\":{\"kind\":\"car\"},"
                        "\"seconds\":1.5}\n"
                        "{\"frame\":12,\"class\":\"Ü\",\"box\":[10.0,2.0,20.0,10.0],\"score\":0.3,"
                        "\"track\":8,\"unsure\":true,\"seconds\":1.5}\n");
    assert_non_null(strstr(content("detections.jsonl"), "\"kind\":\"car\""));
    (void)content("seen.html");
    assert_non_null(strstr(text, "<svg viewBox=\"0 0 640 360\">"));
    assert_non_null(strstr(text, "data:image/jpeg;base64,/9j/"));
    assert_non_null(strstr(text, "<rect x=\"64.0\" y=\"90.0\" width=\"128.0\" height=\"100.0\" "
                                 "fill=\"none\" stroke=\"hsl(0,95%,60%)\" stroke-width=\"6\"/>"));
    assert_non_null(strstr(text, ">&#60;car&#62; 0.75 #7</text>"));
    assert_non_null(strstr(text, "stroke-width=\"2\" stroke-dasharray=\"6\"/>"));
    assert_non_null(strstr(text, ">Ü 0.30 #8</text>"));
    assert_non_null(strstr(text, ">12: 1.50 s</text>"));
    assert_null(strstr(text, "gone"));
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_file_says_what_was_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
