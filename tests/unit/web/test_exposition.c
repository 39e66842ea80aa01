/* The text of /metrics. */
#include "cmocka_all.h"
#include "web/exposition.h"

#include <math.h>

static void a_bucket_holds_what_is_as_long_as_its_bound_and_all_that_is_shorter(void **state)
{
    static const double bounds[] = {0.001, 0.0025, 2.5, INFINITY};
    struct histogram histogram = {0};
    struct buffer body;

    histogram_add(&histogram, bounds, SPAN_MS(1));
    histogram_add(&histogram, bounds, SPAN_NS(1000001));
    histogram_add(&histogram, bounds, SPAN_MS(2500));
    histogram_add(&histogram, bounds, SPAN_S(3600));
    histogram_add(&histogram, bounds, SPAN_NS(-5)); /* another machine's clock: as if at once */
    buffer_init(&body, 1 << 12);
    exposition_histogram(&body, "run", "id=\"7\"", bounds, &histogram);
    exposition_histogram(&body, "run", NULL, bounds, &(struct histogram){.counts = {[3] = 2}});
    assert_string_equal(buffer_text(&body), "run_bucket{id=\"7\",le=\"0.001\"} 2\n"
                                            "run_bucket{id=\"7\",le=\"0.0025\"} 3\n"
                                            "run_bucket{id=\"7\",le=\"2.5\"} 4\n"
                                            "run_bucket{id=\"7\",le=\"+Inf\"} 5\n"
                                            "run_sum{id=\"7\"} 3602.502000001\n"
                                            "run_count{id=\"7\"} 5\n"
                                            "run_bucket{le=\"0.001\"} 0\n"
                                            "run_bucket{le=\"0.0025\"} 0\n"
                                            "run_bucket{le=\"2.5\"} 0\n"
                                            "run_bucket{le=\"+Inf\"} 2\n"
                                            "run_sum 0\n"
                                            "run_count 2\n");
    buffer_fini(&body);
}

static void what_a_label_holds_is_escaped(void **state)
{
    struct buffer labels;

    buffer_init(&labels, 1 << 12);
    exposition_label(&labels, "a", "x\"y\\z\n");
    exposition_label(&labels, "b", "");
    assert_string_equal(buffer_text(&labels), "a=\"x\\\"y\\\\z\\n\",b=\"\"");
    buffer_fini(&labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_holds_what_is_as_long_as_its_bound_and_all_that_is_shorter),
        cmocka_unit_test(what_a_label_holds_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
