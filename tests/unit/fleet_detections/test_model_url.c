#include "cmocka_all.h"
#include "fleet/detections/model_url.h"
#include "protocol/protocol.h"

#include <stdlib.h>
#include <string.h>

/* The example of the S3 API reference, "Authenticating Requests: Using Query Parameters". */
static const struct s3_access example = {
    .key_id = "AKIAIOSFODNN7EXAMPLE",
    .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
enum { EXAMPLE_NOW = 1369353600 /* 2013-05-24T00:00:00Z */, DAY_S = 86400 };

static char *model_url(const char *url, const struct s3_access *access)
{
    struct baton_error error;
    char *ret;

    if (fleet_model_url(&ret, url, access, EXAMPLE_NOW, &error) != BATON_OK) {
        fail_msg("%s: %s", url, error.message);
    }
    return ret;
}

static void expect_begin(const char *url, const struct s3_access *access, const char *beginning)
{
    char *found = model_url(url, access);

    if (strncmp(found, beginning, strlen(beginning)) != 0) {
        fail_msg("%s does not begin with %s", found, beginning);
    }
    free(found);
}

static void expect_refused(const char *url, const struct s3_access *access, const char *reason)
{
    struct baton_error error;
    char *ret = NULL;

    assert_int_not_equal(fleet_model_url(&ret, url, access, EXAMPLE_NOW, &error), BATON_OK);
    assert_null(ret);
    if (strstr(error.message, reason) == NULL) {
        fail_msg("\"%s\" has no \"%s\"", error.message, reason);
    }
}

static void the_published_example_is_signed_as_published(void **state)
{
    char *url;

    assert_int_equal(
        s3_presign(&url, "s3://examplebucket/test.txt", &example, EXAMPLE_NOW, DAY_S, NULL),
        BATON_OK);
    assert_string_equal(
        url, "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
             "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
             "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
             "&X-Amz-Signature="
             "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
    free(url);
}

/* As Amazon's own library for Python signs them. */
static void keys_tokens_and_endpoints_are_signed_as_by_botocore(void **state)
{
    struct s3_access cases[3] = {example, example, example};
    static const char *const urls[] = {"s3://models/cars/us lpr+v2 (ä).mpta",
                                       "s3://models/a//b/c%20d=e&f?g#h~.mpta", "s3://models/a"};
    static const char *const signatures[] = {
        "7148d7ed2c94c8a6ffd6b04678dc4b387a57fede71d236150b12cad9bcdabe94",
        "14403985849dd12cd8be4d0a95a01366e74629215f06bdbffc96f79bc6360d4d",
        "92d6cdad1537c862965e32eabe7e8432af94368a3f254decc92fa253f5af2e9c"};

    cases[0].region = "eu-central-1";
    cases[1].endpoint = "http://minio:9000";
    cases[2].region = "us-west-2";
    cases[2].session_token = "IQoJb3JpZ2luX2VjEH//+token==";
    for (size_t i = 0; i < 3; i++) {
        char *url = model_url(urls[i], &cases[i]);
        const char *signature = strstr(url, "&X-Amz-Signature=");

        assert_non_null(signature);
        assert_string_equal(signature + strlen("&X-Amz-Signature="), signatures[i]);
        free(url);
    }
}

static void other_urls_stay_as_they_are(void **state)
{
    char *url = model_url("https://storage/us-lpr.mpta?token=fresh", &(struct s3_access){0});

    assert_string_equal(url, "https://storage/us-lpr.mpta?token=fresh");
    free(url);
}

static void the_host_is_that_of_the_region_or_of_the_endpoint(void **state)
{
    struct s3_access access = example;

    access.region = "eu-central-1";
    expect_begin("s3://models/a.mpta", &access,
                 "https://models.s3.eu-central-1.amazonaws.com/a.mpta?X-Amz-");
    expect_begin("s3://models.example/a", &access,
                 "https://s3.eu-central-1.amazonaws.com/models.example/a?");
    access.endpoint = "http://minio:9000";
    expect_begin("s3://models/a.mpta", &access, "http://minio:9000/models/a.mpta?");
    access.endpoint = "https://store:443/";
    expect_begin("S3://models/a", &access, "https://store/models/a?");
    access.endpoint = "http://store:80";
    expect_begin("s3://models/a", &access, "http://store/models/a?");
}

static void a_url_lasts_an_hour(void **state)
{
    char *url = model_url("s3://models/a", &example);

    assert_non_null(strstr(url, "&X-Amz-Expires=3600&"));
    free(url);
}

static void what_cannot_be_signed_is_refused(void **state)
{
    static const char *const wrong[] = {"s3://",          "s3://models",    "s3://models/",
                                        "s3:///key",      "s3://Models/a",  "s3://mo/a",
                                        "s3://-models/a", "s3://mod els/a", "s3://models@host/a"};
    char url[S3_KEY_MAX + 32] = "s3://models/";

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        expect_refused(wrong[i], &example, "must be s3://BUCKET/KEY");
    }
    expect_refused("s3://models/a", &(struct s3_access){0}, "needs an access key and its secret");
    memset(url + strlen(url), 'x', S3_KEY_MAX + 1);
    expect_refused(url, &example, "has 1025 bytes: at most 1024");
}

static void a_url_that_no_worker_reads_is_refused(void **state)
{
    char token[PROTOCOL_URL_MAX + 1];
    struct s3_access access = example;

    memset(token, 'x', sizeof(token) - 1);
    token[sizeof(token) - 1] = '\0';
    access.session_token = token;
    expect_refused("s3://models/a", &access, "use a shorter key or session token");
}

static void settings_are_checked(void **state)
{
    static const struct {
        struct s3_access access;
        const char *reason;
    } cases[] = {
        {{.key_id = "a"}, "both an access key's id and its secret"},
        {{.secret = "a"}, "both an access key's id and its secret"},
        {{.region = "eu central"}, "region is \"eu central\""},
        {{.region = ""}, "region is \"\""},
        {{.endpoint = "minio:9000"}, "must be http://HOST[:PORT]"},
        {{.endpoint = "http://"}, "must be http://HOST[:PORT]"},
        {{.endpoint = "http://minio/path"}, "without a path or a user"},
        {{.endpoint = "http://user:secret@minio"}, "without a path or a user"},
    };
    struct baton_error error;

    assert_int_equal(s3_access_check(&example, NULL), BATON_OK);
    assert_int_equal(s3_access_check(&(struct s3_access){0}, NULL), BATON_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(s3_access_check(&cases[i].access, &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, cases[i].reason));
        assert_null(strstr(error.message, "user:secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_example_is_signed_as_published),
        cmocka_unit_test(keys_tokens_and_endpoints_are_signed_as_by_botocore),
        cmocka_unit_test(other_urls_stay_as_they_are),
        cmocka_unit_test(the_host_is_that_of_the_region_or_of_the_endpoint),
        cmocka_unit_test(a_url_lasts_an_hour),
        cmocka_unit_test(what_cannot_be_signed_is_refused),
        cmocka_unit_test(a_url_that_no_worker_reads_is_refused),
        cmocka_unit_test(settings_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
