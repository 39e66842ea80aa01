#include "cli/figures.h"

#include "base/value.h"
#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
    double first = *(const double *)a;
    double second = *(const double *)b;
    return (first > second) - (first < second);
}

/* The nearest rank: the smallest value that at least `percent` of all values do not exceed. */
static double percentile(const double *sorted, size_t count, double percent)
{
    double rank = percent / 100 * (double)count;
    size_t index = (size_t)rank;
    index = (double)index < rank ? index + 1 : index;
    return sorted[index > 0 ? index - 1 : 0];
}

json_t *figures_of(double *ms, size_t count)
{
    qsort(ms, count, sizeof(*ms), by_size);
    return json_pack("{s:f,s:f,s:f,s:f,s:f}", "min_ms", ms[0], "p50_ms", percentile(ms, count, 50),
                     "p95_ms", percentile(ms, count, 95), "p99_ms", percentile(ms, count, 99),
                     "max_ms", ms[count - 1]);
}

void figures_print(const json_t *figures, const char *what)
{
    static const char *const keys[] = {"min_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms"};
    const char *cells[2 * 7 + 1] = {"MS", "MIN", "P50", "P95", "P99", "MAX", NULL, what};
    char texts[5][32];

    for (size_t i = 0; i < 5; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%.3f",
                       json_number_value(json_object_get(figures, keys[i])));
        cells[8 + i] = texts[i];
    }
    print_table(stdout, cells);
}

int figures_length(const struct options *options, span *ret, struct baton_error *reterr)
{
    const char *text = options_text(options, "seconds");
    bool has_unit = text[strspn(text, "0123456789.")] != '\0';
    char given[64];
    int code;

    (void)snprintf(given, sizeof(given), "%s%s", text, has_unit ? "" : "s");
    code = value_duration(given, ret, reterr);
    if (code == BATON_OK && ret->ns == 0) {
        code = error_set(reterr, BATON_EINVAL, "'%s': must be more than 0", text);
    }
    return code == BATON_OK ? code : error_wrap(reterr, "--seconds");
}
