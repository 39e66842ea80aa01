/* The configuration file: whatever it holds, it is taken or refused, and nothing else happens. */
#include "cli/groups.h"
#include "options/config.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7 forgets a buffer of its own when it gives a text up. A program reads one file in its
 * life and ends when that is refused. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml";
}

static bool is_known(const char *name)
{
    return name[0] != 'z';
}

static const struct config_rules rules = {.option = "config", .is_known = is_known};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct option_group *const groups[] = {&group_election, &group_peers,
                                                        &group_timing, &group_serve, NULL};
    struct options *options = options_new(groups);
    if (options) {
        struct baton_error error;
        (void)config_take_text(options, "fuzz", (const char *)data, bytes, &rules, &error);
    }
    options_free(options);
    return 0;
}
