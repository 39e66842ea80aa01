#include "provider/get_each.h"

#include "base/invariant.h"
#include "provider/listing.h"

#include <stdlib.h>

/* The replies to one request for each key. */
struct gathering {
    struct listing found;
    size_t left; /* replies that have not come, and gather() while it asks */
    int code;    /* of the first that failed */
    provider_values_cb done;
    void *userdata;
};

static void note(struct gathering *gathering, int code)
{
    gathering->code = gathering->code ? gathering->code : code;
}

static void count_off(struct gathering *gathering)
{
    bool is_whole = gathering->code == BATON_OK;

    if (--gathering->left > 0) {
        return;
    }
    gathering->done(gathering->userdata, gathering->code, is_whole ? gathering->found.values : NULL,
                    is_whole ? gathering->found.count : 0);
    listing_fini(&gathering->found);
    free(gathering);
}

static void on_got(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct gathering *gathering = userdata;

    if (code == BATON_OK && count > 0 && values[0].data) {
        code = listing_add(&gathering->found, &values[0]);
    }
    note(gathering, code);
    count_off(gathering);
}

static int gather(struct provider *provider, const char *const *keys, size_t count,
                  provider_values_cb done, void *userdata, struct baton_error *reterr)
{
    struct gathering *gathering = calloc(1, sizeof(*gathering));

    if (!gathering) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for %zu keys", count);
    }
    gathering->done = done;
    gathering->userdata = userdata;
    gathering->left = 1;
    for (size_t i = 0; i < count && gathering->code == BATON_OK; i++) {
        int code;

        gathering->left++;
        code = provider->ops->get(provider, keys[i], on_got, gathering, NULL);
        if (code != BATON_OK) {
            note(gathering, code);
            gathering->left--;
        }
    }
    count_off(gathering);
    return BATON_OK;
}

int provider_get_each(struct provider *provider, const char *const *keys, size_t count,
                      provider_values_cb done, void *userdata, struct baton_error *reterr)
{
    INVARIANT(count <= PROVIDER_EACH_MAX);
    return (provider->ops->get_each ? provider->ops->get_each : gather)(provider, keys, count, done,
                                                                        userdata, reterr);
}
