#include "cmocka_all.h"
#include "detector/program/figures.h"

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

static void more_models_than_are_told_apart_are_counted_together(void **state)
{
    struct figures *figures = calloc(1, sizeof(*figures));
    char *text;

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_models_than_are_told_apart_are_counted_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
