#include "cmocka_all.h"
#include "detector/program/figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *page(const struct figures *figures)
{
    struct buffer body;
    char *text;

    buffer_init(&body, 1 << 20);
    figures_write(figures, &body);
    assert_non_null(buffer_text(&body));
    text = strdup((const char *)body.data);
    buffer_fini(&body);
    return text;
}

static void assert_has(const char *text, const char *line)
{
    if (strstr(text, line) == NULL) {
        fail_msg("not in the page: %s\n%s", line, text);
    }
}

static void a_bucket_holds_what_is_as_long_as_its_bound(void **state)
{
    struct histogram histogram = {0};

    (void)state;
    histogram_add(&histogram, SPAN_MS(1));
    histogram_add(&histogram, SPAN_NS(1000001));
    histogram_add(&histogram, SPAN_MS(2500));
    histogram_add(&histogram, SPAN_S(3600));
    histogram_add(&histogram, SPAN_NS(-5)); /* a clock of another machine: as if at once */
    assert_int_equal(histogram.counts[0], 2);
    assert_int_equal(histogram.counts[1], 1);
    assert_int_equal(histogram.counts[HISTOGRAM_BUCKETS - 1], 1);
    assert_int_equal(histogram.counts[HISTOGRAM_BUCKETS], 1);
    assert_true(histogram.seconds > 3602.5 && histogram.seconds < 3602.6);
}

static void buckets_of_the_page_grow_up_to_the_count(void **state)
{
    struct figures figures = {0};
    struct figure *figure = figures_find(&figures, 7);
    char *text;

    (void)state;
    figure->frames = 3;
    histogram_add(&figure->run, SPAN_MS(4));
    histogram_add(&figure->run, SPAN_MS(400));
    histogram_add(&figure->run, SPAN_S(4));
    text = page(&figures);
    assert_has(text, "# TYPE baton_detector_model_run_seconds histogram\n");
    assert_has(text, "model_run_seconds_bucket{model_id=\"7\",le=\"0.0025\"} 0\n");
    assert_has(text, "model_run_seconds_bucket{model_id=\"7\",le=\"0.005\"} 1\n");
    assert_has(text, "model_run_seconds_bucket{model_id=\"7\",le=\"0.5\"} 2\n");
    assert_has(text, "model_run_seconds_bucket{model_id=\"7\",le=\"+Inf\"} 3\n");
    assert_has(text, "model_run_seconds_sum{model_id=\"7\"} 4.404\n");
    assert_has(text, "model_run_seconds_count{model_id=\"7\"} 3\n");
    assert_has(text, "baton_detector_model_frames_total{model_id=\"7\"} 3\n");
    free(text);
}

static void more_models_than_are_told_apart_are_counted_together(void **state)
{
    struct figures *figures = calloc(1, sizeof(*figures));
    char *text;

    (void)state;
    assert_non_null(figures);
    for (int64_t id = 1; id <= FIGURES_MODELS_MAX + 5; id++) {
        figures_find(figures, id)->opened++;
    }
    assert_ptr_equal(figures_find(figures, 1000), figures_find(figures, 2000));
    assert_ptr_equal(figures_find(figures, 1), &figures->of[0]);
    text = page(figures);
    assert_has(text, "baton_detector_model_opened_total{model_id=\"64\"} 1\n");
    assert_has(text, "baton_detector_model_opened_total{model_id=\"other\"} 5\n");
    assert_null(strstr(text, "model_id=\"65\""));
    free(text);
    free(figures);
}

static void a_model_has_its_name_and_its_engine(void **state)
{
    struct figures figures = {0};
    struct figure *figure = figures_find(&figures, -1);
    char *text;

    (void)state;
    (void)snprintf(figure->name, sizeof(figure->name), "\"Tru\\cks\"\n");
    (void)snprintf(figure->engine, sizeof(figure->engine), "opencv 4.6.0");
    figure->subscriptions = 3;
    figure->dropped = 9;
    text = page(&figures);
    assert_has(
        text,
        "baton_detector_model_subscriptions{model_id=\"-1\",model_name=\"\\\"Tru\\\\cks\\\"\\n\""
        ",engine=\"opencv 4.6.0\"} 3\n");
    assert_has(text, "baton_detector_model_frames_dropped_total{model_id=\"-1\"} 9\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_holds_what_is_as_long_as_its_bound),
        cmocka_unit_test(buckets_of_the_page_grow_up_to_the_count),
        cmocka_unit_test(more_models_than_are_told_apart_are_counted_together),
        cmocka_unit_test(a_model_has_its_name_and_its_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
