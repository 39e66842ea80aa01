#include "fleet/http/worker_fields.h"

#include "base/json_read.h"
#include "fleet/objects/object.h"
#include "fleet/objects/url.h"
#include "fleet/state/entities.h"

#include <string.h>

static int check_url(const char *url, struct baton_error *reterr)
{
    int code = fleet_url_check(url, FLEET_URL_WORKER, "url", reterr);

    if (code == BATON_OK && strncmp(url, "ws://", 5) != 0 && strncmp(url, "wss://", 6) != 0) {
        code = error_set(reterr, BATON_EINVAL,
                         "url: must be ws:// or wss://; names that are resolved belong into "
                         "--worker");
    }
    return code;
}

static int check_known(const json_t *body, bool may_name, struct baton_error *reterr)
{
    static const char *const known[] = {"labels", "maxSubscriptions", "cordoned", "draining",
                                        "url"};
    const size_t count = may_name ? 5 : 4;
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)body, key, value)
    {
        size_t at = 0;

        while (at < count && strcmp(key, known[at]) != 0) {
            at++;
        }
        if (at == count) {
            return error_set(reterr, BATON_EINVAL,
                             "%.64s: is no field of this request; it has %slabels, "
                             "maxSubscriptions, cordoned and draining",
                             strpbrk(key, ":/@") != NULL ? FLEET_MASK : key, /* perhaps a URL */
                             may_name ? "url, " : "");
        }
    }
    return BATON_OK;
}

static int take_labels(json_t *json, const json_t *body, struct baton_error *reterr)
{
    const char *labels = NULL;
    int code = json_read_text(body, "", "labels", false, FLEET_LABELS_MAX - 1, &labels, reterr);

    if (code == BATON_OK && labels != NULL && !fleet_labels_are_valid(labels)) {
        code =
            error_set(reterr, BATON_EINVAL,
                      "labels: must be words with one blank between them, such as \"gpu zone=a\"");
    }
    if (code == BATON_OK && labels != NULL) {
        (void)json_object_set_new(json, "labels", json_string(labels));
    } else if (code == BATON_OK && json_object_get(body, "labels") != NULL) {
        (void)json_object_del(json, "labels");
    }
    return code;
}

static int take_numbers(json_t *json, const json_t *body, struct baton_error *reterr)
{
    static const char *const flags[] = {"cordoned", "draining"};
    int64_t most = 0;
    bool has_most = false, flag;
    int code = json_read_integer(body, "", "maxSubscriptions", 0, FLEET_WORKER_SUBSCRIPTIONS_MAX,
                                 &has_most, &most, reterr);

    if (code == BATON_OK && has_most) {
        (void)json_object_set_new(json, "maxSubscriptions", json_integer(most));
    }
    for (size_t i = 0; code == BATON_OK && i < sizeof(flags) / sizeof(flags[0]); i++) {
        code = json_read_flag(body, "", flags[i], &flag, reterr);
        if (code == BATON_OK && json_object_get(body, flags[i]) != NULL) {
            (void)json_object_set_new(json, flags[i], json_boolean(flag));
        }
    }
    return code;
}

int worker_fields_take(json_t *json, const json_t *body, bool may_name, struct baton_error *reterr)
{
    const char *url;
    int code = check_known(body, may_name, reterr);

    if (code == BATON_OK && may_name) {
        code = json_read_text(body, "", "url", true, PROTOCOL_URL_MAX, &url, reterr);
        code = code ? code : check_url(url, reterr);
        if (code == BATON_OK) {
            (void)json_object_set_new(json, "url", json_string(url));
        }
    }
    code = code ? code : take_labels(json, body, reterr);
    return code ? code : take_numbers(json, body, reterr);
}
