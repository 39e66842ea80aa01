/* Settings in a provider's URL, by a table with each kind. */
#include "provider/setting_rows.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct target {
    char text[8];
    char list[16];
    bool flag;
    span length;
    int32_t number;
};

static int take_own(void *target, const char *key, const char *value, struct baton_error *reterr)
{
    (void)target;
    return *value && strlen(value) < SETTING_OWN_MAX
               ? BATON_OK
               : error_set(reterr, BATON_EBUSY, "%s: must never come", key);
}

#define TARGET struct target

static const struct provider_setting table[] = {
    TEXT("text", text),
    LIST("lists", "list", list),
    FLAG("flag", flag),
    SPAN("length", length),
    NUMBER("number", number, -3, 3),
    OWN("own", take_own),
    END,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct target target = {.number = 0};
    struct provider_config config = {0};
    char *url = malloc(bytes + 1);
    int r;

    if (!url) {
        return 0;
    }
    memcpy(url, data, bytes);
    url[bytes] = '\0';
    config.url = url;
    r = provider_settings_take(&target, table, &config, NULL);
    if ((r != BATON_OK && r != BATON_EINVAL) || target.number < -3 || target.number > 3 ||
        target.length.ns < 0 || !memchr(target.text, 0, sizeof(target.text)) ||
        !memchr(target.list, 0, sizeof(target.list))) {
        abort();
    }
    free(url);
    return 0;
}
